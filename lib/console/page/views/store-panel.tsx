import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Overview } from '../../api.js';
import { milliseconds, percent, plural } from '../data/format.js';
import { sum } from '../data/series.js';
import { Chart } from '../parts/chart.js';
import type { ChartLine } from '../parts/chart-line.js';
import { Bar, Empty, Panel } from '../parts/small.js';

const SHARES = [
  { field: 'cache', label: 'Refusal cache', note: 'refused again what was refused' },
  { field: 'prefetch', label: 'Prefetched units', note: 'taken in advance' },
  { field: 'fallback', label: 'Fallback', note: 'while the store failed' },
] as const;

/** How fast the store answers. */
export function StorePanel({ overview }: { overview: Omit<Overview, 'range'> }): JSX.Element {
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
          Times show here as soon as the store answers a check.
        </Empty>
      ) : (
        <Chart label="Time of a check" times={times} lines={lines} format={milliseconds} height={150} />
      )}
    </Panel>
  );
}

/** What answers checks besides the store. */
export function AnswersPanel({ overview }: { overview: Omit<Overview, 'range'> }): JSX.Element {
  const { store } = overview.series;
  const checks = sum(store.checks);
  return (
    <Panel id="answers" title="Without the store" note={`What answered instead, of ${plural(checks, 'check')}.`}>
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
