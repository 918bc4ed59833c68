import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Figures, InstanceInfo, RedisInfo } from '../../api.js';
import {
  bytes,
  duration,
  milliseconds,
  moment,
  percent,
  plural,
  relative,
  signedMilliseconds,
} from '../data/format.js';
import { sum } from '../data/series.js';
import { Chart } from '../parts/chart.js';
import type { ChartLine } from '../parts/chart-options.js';
import { Badge, Bar, Empty, Fact, Panel, Table } from '../parts/small.js';
import { useNow } from '../data/store.js';

/** Clocks that differ by more than this are highlighted. */
const CLOCK_MS = 1_000;
const SILENT_MS = 5_000;

const CIRCUITS = {
  closed: { tone: 'good', text: 'closed' },
  open: { tone: 'danger', text: 'open' },
  none: { tone: 'plain', text: 'none' },
} as const;

export function Instances({
  instances,
  lost,
}: {
  instances: readonly InstanceInfo[];
  lost: readonly InstanceInfo[];
}): JSX.Element {
  const now = useNow();
  return (
    <Panel
      id="instances"
      title="Instances"
      note={`Running: ${instances.length}${lost.length === 0 ? '' : `, lost in the last minutes: ${lost.length}`}.`}
      bare
    >
      <Table
        id="instances"
        of={['Instance', 'Version', 'Up for', 'Clock offset', 'Circuit', 'Last seen']}
        numbers={['Clock offset']}
      >
        {[...instances, ...lost].map((instance) => (
          <tr key={instance.id}>
            <th scope="row">
              <span class="main-text">
                {instance.host}, process {instance.pid}
              </span>{' '}
              {instance.self && <Badge tone="accent">this instance</Badge>}
              {lost.includes(instance) && <Badge tone="danger">lost</Badge>}
              <span class="sub mono breakable">{instance.id}</span>
            </th>
            <td data-label="Version">{instance.version}</td>
            <td data-label="Up for" class="numbers" title={`since ${moment(instance.startedAt)}`}>
              {duration(Math.max(1_000, now - instance.startedAt))}
            </td>
            <td data-label="Clock offset" class="number">
              {Math.abs(instance.clockOffsetMs) >= CLOCK_MS ? (
                <Badge tone="warning">{signedMilliseconds(instance.clockOffsetMs)}</Badge>
              ) : (
                signedMilliseconds(instance.clockOffsetMs)
              )}
            </td>
            <td data-label="Circuit">
              <Badge tone={CIRCUITS[instance.circuit].tone}>{CIRCUITS[instance.circuit].text}</Badge>
            </td>
            <td data-label="Last seen" class="when numbers">
              {now - instance.lastSeenAt < SILENT_MS ? 'just now' : relative(instance.lastSeenAt, now)}
            </td>
          </tr>
        ))}
      </Table>
    </Panel>
  );
}

export function RedisPanel({ redis, stale }: { redis: RedisInfo | null; stale: boolean }): JSX.Element {
  if (redis === null) {
    return (
      <Panel id="redis" title="Redis">
        <Empty icon="info" title="The app counts in its own process">
          Each instance counts separately, and this page shows only the one that serves it. Set the module's option
          redis to share counters between all instances.
        </Empty>
      </Panel>
    );
  }
  const { up, mode, version, usedMemory, maxMemory, ourKeysBytes, latencyMs } = redis;
  const limited = maxMemory !== null;
  return (
    <Panel
      id="redis"
      title="Redis"
      aside={
        <Badge tone={stale ? 'plain' : up ? 'good' : 'danger'}>
          <span class="dot" />
          {stale ? 'unknown' : up ? 'answers' : 'does not answer'}
        </Badge>
      }
    >
      <dl class="facts">
        <Fact name="Server">
          {version ?? 'unknown'}, {mode}
        </Fact>
        <Fact name="Response time">{latencyMs === null ? 'unknown' : milliseconds(latencyMs)}</Fact>
        <Fact name="Memory">
          {bytes(usedMemory)}
          {limited && ` of ${bytes(maxMemory)}`}
        </Fact>
        <Fact name="Keys of limits">
          {ourKeysBytes === null ? 'unknown' : `about ${bytes(ourKeysBytes)}`}
          {ourKeysBytes !== null && usedMemory !== null && (
            <span class="soft"> ({percent(ourKeysBytes, usedMemory)})</span>
          )}
        </Fact>
      </dl>
      {limited && usedMemory !== null && (
        <div class="shares">
          <Bar
            label="Memory of Redis in use"
            share={usedMemory / maxMemory}
            tone={usedMemory > 0.9 * maxMemory ? 'full' : undefined}
          />
        </div>
      )}
    </Panel>
  );
}

const SHARES = [
  { field: 'cache', label: 'Refusal cache', note: 'still refused after an earlier refusal' },
  { field: 'prefetch', label: 'Prefetched units', note: 'taken in advance' },
  { field: 'fallback', label: 'Fallback', note: 'while the store failed' },
] as const;

export function StorePanel({ overview }: { overview: Figures }): JSX.Element {
  const { times, store } = overview.series;
  const lines = useMemo<ChartLine[]>(
    () => [
      { label: 'p99', colour: 'other', values: store.p99, filled: true },
      { label: 'p50', colour: 'allowed', values: store.p50 },
    ],
    [store],
  );
  return (
    <Panel id="store" title="Store" note="How long a check takes.">
      {store.p50.every((value) => value === null) ? (
        <Empty icon="overview" title="No check was timed">
          Times appear here as soon as the store responds to a check.
        </Empty>
      ) : (
        <Chart label="Time of a check" times={times} lines={lines} format={milliseconds} height={150} />
      )}
    </Panel>
  );
}

/** The sources of answers other than the store. */
export function AnswersPanel({ overview }: { overview: Figures }): JSX.Element {
  const { store } = overview.series;
  const checks = sum(store.checks);
  return (
    <Panel id="answers" title="Decided without the store" note={`How ${plural(checks, 'check')} were decided.`}>
      <div class="shares">
        {SHARES.map(({ field, label, note }) => {
          const count = sum(store[field]);
          return (
            <div class="share" key={field}>
              <span>{label}</span>
              <span class="numbers">{percent(count, checks)}</span>
              <Bar
                label={label}
                share={checks === 0 ? 0 : count / checks}
                tone={field === 'fallback' ? 'full' : undefined}
              />
              <span class="soft small">{note}</span>
            </div>
          );
        })}
      </div>
    </Panel>
  );
}
