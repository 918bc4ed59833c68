import { consoleMessages } from '../../engine/errors/messages/console.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import type { Demand, RateOutcome } from '../api.js';
import type { CatalogEntry } from '../limit-catalog.js';
import type { ConsoleClock, ConsoleRedis } from '../telemetry/console-redis.js';
import {
  ALL_HASHES,
  DEMAND_MS,
  type DemandSampler,
  intervalOf,
  type KeyDemand,
  mergeDemand,
  MOST_WINDOWS,
  readDemand,
  type SampledWindow,
} from '../telemetry/demand-sampler.js';
import type { Instances, ReadInstance } from './instances.js';

/** Maximum number of rates to choose from. */
const MOST_RATES = 80;
const BARS = 24;

/** Sums up the demand of a limit's clients. */
export class Demands {
  constructor(
    private readonly sampler: DemandSampler,
    private readonly instances: Instances,
    private readonly clock: ConsoleClock,
  ) {}

  /** The demand of the last hour over all instances. Never rejects because of Redis. */
  async of({ label, rule }: CatalogEntry): Promise<Demand> {
    const at = this.clock.now();
    const { options } = rule.limit;
    const intervalMs = intervalOf(options);
    const current = (options as { readonly rate?: unknown }).rate;
    const about = { limit: label, at: Math.round(at), current: typeof current === 'number' ? current : null };
    if (intervalMs === undefined)
      return { ...about, ...NOTHING, intervalMs: null, coverage: this.instances.alone().coverage };
    const first = Math.floor((at - DEMAND_MS) / intervalMs);
    const own = this.sampler.windows(label);
    const windows: SampledWindow[] = own?.intervalMs === intervalMs ? [...own.done] : [];
    let problem: string | undefined;
    let { coverage } = this.instances.alone();
    try {
      const command = (id: string, { keys }: ConsoleRedis) => ['hgetall', keys.demand(id, label, intervalMs)] as const;
      let others: SampledWindow[] = [];
      const begin = () => void (others = []);
      const add = ({ reply }: ReadInstance) => others.push(...windowsIn(reply)) >= 0;
      ({ coverage } = await this.instances.read(2 * DEMAND_MS, MOST_WINDOWS, command, begin, add));
      windows.push(...others);
    } catch (error) {
      // Some of the instances would look like all of them.
      problem = consoleMessages.unreachable(reasonOf(error));
    }
    const merged = merge(windows.filter(({ window }) => window >= first));
    return {
      ...about,
      intervalMs,
      ...summed([...merged.values()], about.current),
      windows: merged.size,
      since: merged.size === 0 ? null : Math.min(...merged.keys()) * intervalMs,
      coverage,
      problem,
    };
  }
}

const NOTHING = { windows: 0, since: null, clients: 0, sample: 1, distribution: [], rates: [] };

/** Merges the demand of all instances in each window. */
function merge(windows: readonly SampledWindow[]): ReadonlyMap<number, KeyDemand> {
  const byWindow = new Map<number, KeyDemand[]>();
  for (const { window, demand } of windows) byWindow.set(window, [...(byWindow.get(window) ?? []), demand]);
  return new Map([...byWindow].map(([window, parts]) => [window, mergeDemand(parts)]));
}

/** The rejections that rates would have caused in windows, for the clients that were counted in all of these. */
export function summed(
  windows: readonly KeyDemand[],
  current: number | null,
): Pick<Demand, 'clients' | 'sample' | 'distribution' | 'rates'> {
  const below = Math.min(ALL_HASHES, ...windows.map((window) => window.below));
  const sample = below / ALL_HASHES;
  const most = new Map<number, number>();
  const all: number[] = [];
  for (const { units } of windows) {
    for (const [hash, count] of units) {
      if (hash >= below || count === 0) continue;
      all.push(count);
      most.set(hash, Math.max(count, most.get(hash) ?? 0));
    }
  }
  const counts = all.toSorted((one, other) => one - other);
  const peaks = [...most.values()].toSorted((one, other) => one - other);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const scaled = (clients: number) => Math.round(clients / sample);
  const outcome = (rate: number): RateOutcome => ({
    rate,
    refused: total === 0 ? 0 : beyond(counts, rate) / total,
    clients: scaled(peaks.length - upTo(peaks, rate)),
  });
  return {
    clients: scaled(peaks.length),
    sample,
    distribution: barsOf(peaks).map(({ from, to }) => ({
      upTo: to,
      clients: scaled(upTo(peaks, to) - upTo(peaks, from)),
    })),
    rates: ratesOf(peaks, current).map(outcome),
  };
}

/** The number of values, in ascending order, that are at most this. */
function upTo(ascending: readonly number[], most: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The sum of the amounts by which values, in ascending order, exceed this. */
function beyond(ascending: readonly number[], most: number): number {
  const larger = ascending.slice(upTo(ascending, most));
  return larger.reduce((sum, count) => sum + count - most, 0);
}

/** Round rates that reject different numbers of clients, and the current rate. */
function ratesOf(peaks: readonly number[], current: number | null): number[] {
  const largest = peaks.at(-1);
  if (largest === undefined) return [];
  const round: number[] = [];
  for (let ten = 1; ten <= largest * 2; ten *= 10)
    round.push(...[1, 1.5, 2, 3, 4, 5, 6, 8].map((digit) => digit * ten));
  const quantiles = Array.from({ length: 20 }, (_, at) => peaks[Math.floor((at * peaks.length) / 20)]!);
  const rates = [...new Set([...round, ...quantiles, largest, ...(current === null ? [] : [current])])]
    .filter((rate) => Number.isInteger(rate) && (rate <= 2 * largest || rate === current))
    .toSorted((one, other) => one - other);
  return rates.length <= MOST_RATES ? rates : rates.filter((_, at) => at % Math.ceil(rates.length / MOST_RATES) === 0);
}

/** Ranges for a chart of the demand. Their width is the distance between round numbers. */
function barsOf(peaks: readonly number[]): { from: number; to: number }[] {
  const largest = peaks.at(-1);
  if (largest === undefined) return [];
  const least = largest / BARS;
  const ten = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const width = Math.max(1, [1, 2, 5, 10].map((digit) => digit * ten).find((each) => each >= least) ?? 10 * ten);
  return Array.from({ length: Math.ceil(largest / width) }, (_, at) => ({ from: at * width, to: (at + 1) * width }));
}

function windowsIn(reply: unknown): SampledWindow[] {
  return Object.entries((reply ?? {}) as Record<string, unknown>).flatMap(([field, text]) => {
    const demand = readDemand(text);
    const window = Number(field);
    return demand === undefined || !Number.isSafeInteger(window) ? [] : [{ window, demand }];
  });
}
