import type { JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import type { Changes, Figures, InstanceInfo, Overview, Range, RedisInfo } from '../../api.js';
import { isAlone } from '../data/series.js';
import { connection, useStore } from '../data/store.js';
import { plural } from '../data/format.js';
import { live } from '../data/live.js';
import { changeMarks, startMarks } from '../data/marks.js';
import { useResource } from '../data/client.js';
import { useParam } from '../data/route.js';
import { LiveSwitch } from '../parts/frame.js';
import { Choice, Fold, Panel, ViewHead, Waiting } from '../parts/small.js';
import { Incidents } from './incidents.js';
import { AnswersPanel, Instances, RedisPanel, StorePanel } from './system.js';
import { LimitsTable } from './limits-table.js';
import { Tiles } from './tiles.js';
import { Traffic } from './traffic.js';
import type { ViewProps } from '../data/session.js';

/** The ranges, and how often their numbers are loaded again. The last five minutes are live. */
const RANGES: Record<Range, { label: string; span: string; everyMs?: number }> = {
  '5m': { label: '5 min', span: 'the last 5 minutes' },
  '1h': { label: '1 hour', span: 'the last hour', everyMs: 15_000 },
  '1d': { label: '1 day', span: 'the last day', everyMs: 60_000 },
  '7d': { label: '7 days', span: 'the last 7 days', everyMs: 300_000 },
  '30d': { label: '30 days', span: 'the last 30 days', everyMs: 300_000 },
};
const NAMES = Object.keys(RANGES) as Range[];

/** The numbers of a range: the last five minutes are live, longer ranges are polled. */
export function useOverview(range: Range): {
  data: Figures | undefined;
  error?: string;
  reload: () => void;
} {
  const now = useStore(live);
  const path = range === '5m' ? undefined : `api/overview?range=${range}`;
  const { data, error, reload } = useResource<Overview>(path, RANGES[range].everyMs);
  const last = useRef<Figures>(undefined);
  const loaded = range === '5m' ? now : data;
  if (loaded) last.current = loaded;
  if (error !== undefined && !loaded) return { data: undefined, error, reload };
  // Keeps the numbers of the previous range until the new ones have loaded, so that the page doesn't jump.
  return { data: loaded ?? last.current, reload };
}

/** The range in the address. */
export function useRange(): [Range, (range: Range) => void] {
  return useParam<Range>('range', '5m', NAMES);
}

/** The switch of live numbers, and the ranges to choose from. */
export function RangeChoice({ range, onChoose }: { range: Range; onChoose: (range: Range) => void }): JSX.Element {
  const options = NAMES.map((value) => ({ value, label: RANGES[value].label }));
  return (
    <>
      <LiveSwitch />
      <Choice name="range" legend="Range" value={range} options={options} onChoose={onChoose} />
    </>
  );
}

/** All limits, all instances, and the store. */
export function OverviewView({ session }: ViewProps): JSX.Element {
  const [range, setRange] = useRange();
  const { data, error, reload } = useOverview(range);
  const now = useStore(live);
  const { state } = useStore(connection);
  const changes = useResource<Changes>('api/changes', 30_000).data?.changes;
  const { instances } = now ?? data ?? {};
  const marks = useMemo(() => [...changeMarks(changes ?? []), ...startMarks(instances ?? [])], [changes, instances]);
  const stale = state === 'lost' || state === 'denied';
  return (
    <>
      <ViewHead title="Overview" aside={<RangeChoice range={range} onChoose={setRange} />}>
        Activity of the limits in {RANGES[range].span},{' '}
        {session.storage !== 'redis'
          ? 'in the instance that serves this page'
          : data && isAlone(data)
            ? 'in the instance that serves this page; the others could not be read'
            : 'all instances together'}
        .
      </ViewHead>
      {data ? (
        <>
          <Incidents limits={session.limits} />
          <Tiles overview={data} instances={(now ?? data).instances} />
          <Panel id="traffic" title="Decisions per second">
            <Traffic overview={data} marks={marks} />
          </Panel>
          <LimitsTable limits={session.limits} overview={data} />
          <Fold title="Store and instances" note={systemNote((now ?? data).instances, (now ?? data).redis)}>
            <div class="columns three">
              <StorePanel overview={data} />
              <AnswersPanel overview={data} />
              <RedisPanel redis={(now ?? data).redis} stale={stale} />
            </div>
            <Instances instances={(now ?? data).instances} lost={(now ?? data).lost ?? []} />
          </Fold>
        </>
      ) : (
        <Waiting error={error} what="numbers" onRetry={reload} />
      )}
    </>
  );
}

function systemNote(instances: readonly InstanceInfo[], redis: RedisInfo | null): string {
  const of = plural(instances.length, 'instance');
  if (redis === null) return `${of}, in process`;
  return `${of}, ${redis.up ? 'Redis responds' : "Redis doesn't respond"}`;
}
