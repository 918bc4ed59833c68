import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { Changed, Demand, LimitInfo } from '../../api.js';
import { post, useResource } from '../data/client.js';
import { clock, duration, percent, plural, whole } from '../data/format.js';
import { loadSession, session } from '../data/session.js';
import { say, useStore } from '../data/store.js';
import { type Action, useDialog } from '../parts/dialog.js';
import { Empty, Note, Panel, Waiting } from '../parts/small.js';
import { EXPIRY } from './key-actions.js';
import { filled } from './patch-fields.js';

const EVERY_MS = 15_000;

/** The units that clients requested in the last hour, and how many of them another rate would have rejected. */
export function DemandPanel({ limit, onChanged }: { limit: LimitInfo; onChanged: () => void }): JSX.Element | null {
  const { name } = limit;
  const { data, error, reload } = useResource<Demand>(`api/demand?limit=${encodeURIComponent(name)}`, EVERY_MS);
  if (data?.intervalMs === null) return null;
  return (
    <Panel id="demand" title="Choose a rate" note={data && noteOf(data)}>
      {data === undefined ? (
        <Waiting error={error} what="demand" onRetry={reload} />
      ) : (
        <>
          {data.problem !== undefined && <Note danger>{data.problem}</Note>}
          {data.rates.length === 0 ? (
            <Empty icon="rates" title="Nothing was counted yet">
              Some intervals of {duration(data.intervalMs)} per hour are counted, and all of them while this page is
              open. The first one appears when it is over.
            </Empty>
          ) : (
            <Chooser demand={data} limit={limit} onChanged={onChanged} />
          )}
        </>
      )}
    </Panel>
  );
}

function noteOf({ windows, intervalMs, since, sample }: Demand): string {
  if (since === null) return 'Units that clients requested in the last hour.';
  const of = `Units that clients requested in ${plural(windows, 'interval')} of ${duration(intervalMs!)} since ${clock(since)}`;
  return sample < 1 ? `${of}, estimated from ${percent(sample, 1)} of them.` : `${of}.`;
}

function Chooser({
  demand: { rates, distribution, clients, current, intervalMs },
  limit,
  onChanged,
}: {
  demand: Demand;
  limit: LimitInfo;
  onChanged: () => void;
}): JSX.Element {
  const id = useId();
  const { canWrite } = useStore(session);
  const [chosen, setChosen] = useState<number>();
  const [dialog, openDialog] = useDialog();
  const wanted = chosen ?? current ?? rates[0]!.rate;
  const at = nearest(
    rates.map(({ rate }) => rate),
    wanted,
  );
  const { rate, refused, clients: hit } = rates[at]!;
  const every = duration(intervalMs!);
  const text = `${whole(rate)} in ${every}${rate === current ? ', as now,' : ''} would have refused ${percent(refused, 1)} of the requested units, and at least one request of ${whole(hit)} of ${plural(clients, 'client')}.`;
  const acts = (path: string, title: string, done: string, fields: Action['fields']): Action => ({
    title,
    intro: (
      <>
        <strong>{limit.name}</strong>: {text}
      </>
    ),
    fields,
    confirm: title,
    reason: `${whole(rate)} in ${every} refuses ${percent(refused, 1)}, ${whole(hit)} of ${plural(clients, 'client')}`,
    async run({ reason, expiresIn }) {
      const body = { limit: limit.name, patch: { rate }, reason, expiresIn: filled(expiresIn) };
      const { warning } = await post<Changed>(`api/${path}`, body);
      onChanged();
      void loadSession();
      say(`${limit.name} ${done}`);
      if (warning !== undefined) say(warning, 'warning');
    },
  });
  return (
    <div class="chooser">
      <Bars distribution={distribution} rate={rate} every={every} />
      <label for={id}>Units in {every}</label>
      <input
        id={id}
        type="range"
        min={0}
        max={rates.length - 1}
        value={at}
        aria-valuetext={text}
        onInput={(event) => setChosen(rates[Number(event.currentTarget.value)]!.rate)}
      />
      <p class="outcome">
        <strong class="numbers">{text}</strong>{' '}
        <span class="soft">Counted as fixed windows. With bursts and slow refills, the result may differ.</span>
      </p>
      {canWrite && limit.changeable && rate !== current && (
        <div class="buttons">
          {[
            acts('candidates/set', 'Preview as a candidate', 'has a candidate.', []),
            acts('rates/set', 'Enforce', 'has another rate.', [EXPIRY]),
          ].map((action) => (
            <button key={action.title} type="button" class="button" onClick={() => openDialog(action)}>
              {action.title}
            </button>
          ))}
        </div>
      )}
      {dialog}
    </div>
  );
}

/** The number of clients by the units of their busiest interval. Clients beyond the rate are highlighted. */
function Bars({
  distribution,
  rate,
  every,
}: {
  distribution: Demand['distribution'];
  rate: number;
  every: string;
}): JSX.Element {
  const most = Math.max(1, ...distribution.map(({ clients }) => clients));
  const largest = distribution.at(-1)?.upTo ?? 0;
  return (
    <>
      <div class="bars" aria-hidden="true">
        {distribution.map(({ upTo, clients }) => (
          <span
            key={upTo}
            class={upTo > rate ? 'beyond' : undefined}
            // The number of clients per bar varies by orders of magnitude.
            style={{ height: `${clients === 0 ? 0 : 4 + (96 * Math.log1p(clients)) / Math.log1p(most)}%` }}
            title={`${plural(clients, 'client')} with at most ${whole(upTo)} in ${every}`}
          />
        ))}
      </div>
      <div class="bars-axis soft numbers" aria-hidden="true">
        <span>0</span>
        <span>clients by their busiest interval, logarithmic</span>
        <span>{whole(largest)}</span>
      </div>
      <span class="hidden-text">
        {distribution
          .filter(({ clients }) => clients > 0)
          .map(({ upTo, clients }) => `${plural(clients, 'client')} with at most ${whole(upTo)}`)
          .join(', ')}
      </span>
    </>
  );
}

/** The index of the nearest number. */
function nearest(ascending: readonly number[], wanted: number): number {
  const distances = ascending.map((each) => Math.abs(each - wanted));
  return distances.indexOf(Math.min(...distances));
}
