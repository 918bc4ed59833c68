import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Incident, LimitInfo } from '../../api.js';
import { incidentText } from '../../incident-text.js';
import { clock, plural, relative, whole } from '../data/format.js';
import { live } from '../data/live.js';
import { useNow, useStore } from '../data/store.js';
import { hrefOf } from '../data/route.js';
import { session } from '../data/session.js';
import { type Action, useDialog } from '../parts/dialog.js';
import { Icon } from '../parts/icons.js';
import { Badge, Panel } from '../parts/small.js';
import { KeyButtons, RaiseLimit, Who } from './quick-actions.js';

/** The number of incidents displayed at first. */
const SHOWN = 4;
/** The number of keys displayed per incident. */
const KEYS = window.matchMedia('(max-width: 56rem)').matches ? 1 : 3;

/** Active incidents, the most severe first, with the keys behind them and immediate actions. */
export function Incidents({
  limits,
  only,
}: {
  limits: readonly LimitInfo[];
  /** The name of a limit, to display only its incidents; nothing is displayed if it has none. */
  only?: string;
}): JSX.Element | null {
  const all = useStore(live)?.incidents;
  const incidents = only === undefined ? all : all?.filter((each) => 'limit' in each && each.limit === only);
  const [isOpen, setOpen] = useState(false);
  const [dialog, openDialog] = useDialog();
  if (incidents === undefined || (only !== undefined && incidents.length === 0)) return null;
  const shown = isOpen ? incidents : incidents.slice(0, SHOWN);
  return (
    <Panel id="incidents" title="Active incidents" bare>
      <div class="hidden-text" role="status">
        {incidents.length === 0 ? 'No active incidents' : plural(incidents.length, 'incident')}
      </div>
      {incidents.length === 0 ? (
        <p class="calm">
          <Icon name="done" /> None: no limit refuses many requests or comes close to its quota, and the store responds
          as usual.
        </p>
      ) : (
        <ul class="incidents">
          {shown.map((incident) => (
            <IncidentRow
              key={incident.id}
              incident={incident}
              limit={limits.find(({ name }) => 'limit' in incident && name === incident.limit)}
              onAct={openDialog}
            />
          ))}
        </ul>
      )}
      {incidents.length > SHOWN && (
        <div class="table-foot">
          <button type="button" class="button small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Show the worst' : `Show ${plural(incidents.length - SHOWN, 'more incident')}`}
          </button>
        </div>
      )}
      {dialog}
    </Panel>
  );
}

function IncidentRow({
  incident,
  limit,
  onAct,
}: {
  incident: Incident;
  limit: LimitInfo | undefined;
  onAct: (action: Action) => void;
}): JSX.Element {
  const now = useNow();
  const { canAct, canWrite } = useStore(session);
  const keys = 'keys' in incident ? incident.keys.slice(0, KEYS) : [];
  const reason = reasonFor(incident);
  return (
    <li class={incident.severity}>
      <div class="what">
        <Badge tone={incident.severity === 'critical' ? 'danger' : 'warning'}>{LABELS[incident.kind]}</Badge>{' '}
        <span>
          {'limit' in incident && <a href={hrefOf('limit', incident.limit)}>{incident.limit}</a>}{' '}
          {incidentText(incident)}
        </span>{' '}
        <span class="soft numbers" title={clock(incident.since)}>
          {incident.sinceEarlier ? 'longer than' : 'since'} {relative(incident.since, now).replace(/ ago$/, '')}
        </span>
        {limit?.changeable && canWrite && incident.kind !== 'adaptive' && (
          <span class="buttons">
            <RaiseLimit limit={limit} reason={reason} onAct={onAct} />
          </span>
        )}
      </div>
      {keys.length > 0 && (
        <ul class="behind">
          {keys.map((key) => (
            <li key={key.id}>
              <Who of={key} />
              <span class="soft numbers">
                {key.error > 0 ? `${whole(key.count - key.error)} to ${whole(key.count)}` : whole(key.count)} refused
              </span>
              {limit && canAct && <KeyButtons limit={limit} who={key} reason={reason} onAct={onAct} />}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

const LABELS: Readonly<Record<Incident['kind'], string>> = {
  refused: 'refuses',
  near: 'near',
  fallback: 'store',
  latency: 'slow',
  circuit: 'store',
  adaptive: 'full',
  lost: 'instance',
};

/** The reason in the log for a change because of an incident. */
function reasonFor(incident: Incident): string {
  if (incident.kind !== 'refused' && incident.kind !== 'near') return '';
  const { limit, allowed, refused } = incident;
  return incident.kind === 'refused'
    ? `${limit} refused ${whole(refused)} of ${whole(allowed + refused)} in a minute`
    : `${limit} came near its quota`;
}
