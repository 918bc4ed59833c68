import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Changes, Figures, LimitInfo, LimitTotals, Rates } from '../../api.js';
import { isAlone, ofLimit, sum } from '../data/series.js';
import { amount, percent, plural, whole } from '../data/format.js';
import { changeMarks, startMarks } from '../data/marks.js';
import { useResource } from '../data/client.js';
import { hrefOf } from '../data/route.js';
import { limitNamed, session, type ViewProps } from '../data/session.js';
import { useStore } from '../data/store.js';
import { useDialog } from '../parts/dialog.js';
import { Icon } from '../parts/icons.js';
import { Badge, Empty, ModeBadge, Note, Panel, ViewHead, Waiting } from '../parts/small.js';
import { AdaptivePanel } from './adaptive-panel.js';
import { DemandPanel } from './demand.js';
import { Incidents } from './incidents.js';
import { Parts, partsText } from './parts.js';
import { RateCard } from './rate-card.js';
import { RangeChoice, useOverview, useRange } from './overview.js';
import { Tile } from './tiles.js';
import { TopKeysPanel } from './top-keys.js';
import { Traffic } from './traffic.js';

/** The page of one limit: its activity and its keys. */
export function LimitView({ limit: name = '', session: about }: ViewProps): JSX.Element {
  // Its rate may change while it is displayed.
  useStore(session);
  const limit = limitNamed(name);
  if (!limit) {
    return (
      <>
        <ViewHead title="Limit" />
        <div class="panel">
          <Empty icon="limit" title="No limit has this name">
            It may have been renamed, or no running instance has it. <a href={hrefOf('overview')}>All limits</a>
          </Empty>
        </div>
      </>
    );
  }
  return <KnownLimit limit={limit} always={about.topKeys === 'always'} />;
}

function KnownLimit({ limit, always }: { limit: LimitInfo; always: boolean }): JSX.Element {
  const [range, setRange] = useRange();
  const { data, error, reload } = useOverview(range);
  /** Counts the changes made on this page. */
  const [changes, setChanges] = useState(0);
  const {
    allowed = 0,
    refused = 0,
    near = 0,
    shadowRefused = 0,
    candidateRefused = 0,
    candidateAsked = 0,
  }: Partial<LimitTotals> = ofLimit(data?.totals ?? {}, limit.name) ?? {};
  const changed = useResource<Changes>(`api/changes?limit=${encodeURIComponent(limit.name)}`, 30_000).data?.changes;
  const instances = data?.instances;
  const marks = useMemo(() => [...changeMarks(changed ?? []), ...startMarks(instances ?? [])], [changed, instances]);
  const all = allowed + refused;
  return (
    <>
      <ViewHead
        title={
          <>
            {limit.name} {limit.mode !== 'enforce' && <ModeBadge mode={limit.mode} />}
          </>
        }
        aside={<RangeChoice range={range} onChoose={setRange} />}
      >
        <a href={hrefOf('overview')}>All limits</a>. {limit.rate}, counted by {limit.key}
        {partsText(limit)}.
      </ViewHead>
      {data ? (
        <>
          <Incidents limits={[limit]} only={limit.name} />
          <dl class="tiles">
            <Tile name="Allowed" colour="allowed" value={whole(allowed)} note="decisions" />
            <Tile
              name="Refused"
              colour="refused"
              value={whole(refused)}
              note={`${percent(refused, all)} of ${whole(all)}`}
            />
            <Tile
              name="Came near the limit"
              colour="near"
              value={whole(near)}
              note={`${near === 1 ? 'time' : 'times'}, ${percent(near, all)} of decisions`}
            />
            {shadowRefused > 0 && (
              <Tile
                name="Refused in shadow"
                value={whole(shadowRefused)}
                note={`${percent(shadowRefused, all)}, all let through`}
              />
            )}
            {limit.candidate !== null && (
              <Tile
                name="Candidate would refuse"
                colour="other"
                value={whole(candidateRefused)}
                note={`${percent(candidateRefused, candidateAsked)}, by ${limit.candidate}`}
              />
            )}
            {limit.algo === 'adaptive' ? (
              <AdaptiveTile limit={limit} overview={data} />
            ) : (
              <Tile
                name="Quota"
                value={amount(limit.quota, limit.unit)}
                note={
                  limit.unit === undefined
                    ? `${limit.quota === 1 ? 'unit' : 'units'} at once, at most`
                    : 'at once, at most'
                }
              />
            )}
          </dl>
          <Panel id="traffic" title="Decisions per second">
            <Traffic overview={data} limit={limit.name} quotaPerSecond={limit.perSecond ?? undefined} marks={marks} />
          </Panel>
          {limit.algo === 'adaptive' && <AdaptivePanel limit={limit.name} overview={data} />}
        </>
      ) : (
        <Waiting error={error} what="numbers" onRetry={reload} />
      )}
      <Parts limit={limit} />
      {limit.changeable && <OwnRate key={changes} limit={limit.name} />}
      {limit.addressable && <DemandPanel limit={limit} onChanged={() => setChanges(changes + 1)} />}
      <TopKeysPanel info={limit} always={always} />
      <Panel id="abilities" title="Capabilities">
        <div class="buttons">
          {limit.changeable && <Badge>rate and mode can be changed</Badge>}
          {limit.addressable && <Badge>keys can be looked up</Badge>}
          {limit.history && <Badge>keeps a history</Badge>}
          {limit.reservations && <Badge>takes reservations</Badge>}
          {limit.leases && <Badge>holds leases</Badge>}
          {!limit.changeable && !limit.addressable && <Badge>counts only requests of its routes</Badge>}
        </div>
        <div class="buttons after">
          {limit.addressable && (
            <a class="button" href={hrefOf('lookup')}>
              <Icon name="lookup" />
              Look up a key
            </a>
          )}
          <a class="button" href={hrefOf('changes', limit.name)}>
            <Icon name="changes" />
            Changes of this limit
          </a>
        </div>
      </Panel>
    </>
  );
}

/** The limit's rate and mode, and the actions that change them. */
function OwnRate({ limit }: { limit: string }): JSX.Element {
  const { data, error, reload } = useResource<Rates>(`api/rates?limit=${encodeURIComponent(limit)}`, 10_000);
  const [dialog, openDialog] = useDialog();
  const rate = data?.rates[0];
  return (
    <>
      {data?.problem !== undefined && <Note danger>{data.problem}</Note>}
      {rate ? (
        <RateCard id="rate" rate={rate} isAlone onAct={openDialog} onChanged={reload} />
      ) : (
        <Waiting error={error} what="rate" onRetry={reload} />
      )}
      {dialog}
    </>
  );
}

/** The units that an adaptive limit admits now. Each instance learns this number on its own. */
function AdaptiveTile({ limit, overview }: { limit: LimitInfo; overview: Figures }): JSX.Element {
  const known = overview.instances.flatMap(({ adaptive }) => adaptive?.[limit.name] ?? []);
  const most = `at most ${whole(limit.quota)} in each`;
  if (known.length === 0) {
    const value = isAlone(overview) ? 'not known' : 'not asked yet';
    return <Tile name="Lets in now" value={value} text note={most} />;
  }
  return (
    <Tile
      name="Lets in now"
      value={whole(sum(known.map((each) => each.limit)))}
      unit="at once"
      note={`${whole(sum(known.map(({ inFlight }) => inFlight)))} in flight, ${plural(known.length, 'instance')}, ${most}`}
    />
  );
}
