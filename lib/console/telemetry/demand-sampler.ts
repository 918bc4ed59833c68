import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { milliseconds } from '../../engine/options/values.js';
import { DemandWindow, type KeyDemand, writeDemand } from './demand-window.js';

/** How long what was counted is kept. */
export const DEMAND_MS = 3_600_000;
/** The windows of an hour that are counted: while one is, each decision of the limit costs more. */
const SAMPLED_AN_HOUR = 6;
/** The most windows of a limit to keep, those that were counted for viewers included. */
export const MOST_WINDOWS = 64;
/** The most limits whose demand is counted. */
const MOST_LIMITS = 500;
/** A window that is counted from later on lacks what came before. */
const LATE_MS = 900;

/** A window, by the number of intervals since the epoch at its start. */
export interface SampledWindow {
  readonly window: number;
  readonly demand: KeyDemand;
}

/** A window to store. */
export interface UnsentWindow extends SampledWindow {
  readonly label: string;
  readonly intervalMs: number;
  readonly text: string;
  /** The windows of this limit that are no longer kept. */
  readonly gone: readonly number[];
}

/** What is counted of a limit. */
interface Sampled {
  readonly intervalMs: number;
  readonly done: SampledWindow[];
  open: { readonly window: number; readonly demand: DemandWindow } | undefined;
}

/** Counts what the keys of each limit ask for in some of its intervals: all instances count in the same ones. */
export class DemandSampler {
  private readonly byLabel = new Map<string, Sampled>();
  private unsent: UnsentWindow[] = [];

  /**
   * @param isWatched whether somebody looks at the demand of a limit: then each interval is counted
   */
  constructor(private readonly isWatched: (label: string) => boolean) {}

  /**
   * Where the demand of a limit is counted now; `undefined` if it is not. Called for each limit at the start of each second, by the
   * Redis server's clock.
   */
  windowOf(label: string, limit: CompiledLimit, now: number): DemandWindow | undefined {
    const intervalMs = intervalOf(limit.options);
    if (intervalMs === undefined) return undefined;
    let sampled = this.byLabel.get(label);
    if (sampled?.intervalMs !== intervalMs) {
      if (sampled === undefined && this.byLabel.size >= MOST_LIMITS) return undefined;
      // Numbers of another interval say nothing of this one.
      this.byLabel.set(label, (sampled = { intervalMs, done: [], open: undefined }));
    }
    const window = Math.floor(now / intervalMs);
    if (sampled.open?.window === window) return sampled.open.demand;
    this.close(label, sampled, now);
    const isStart = now - window * intervalMs < LATE_MS;
    if (!isStart || !(this.isWatched(label) || isSampled(label, window, intervalMs))) return undefined;
    sampled.open = { window, demand: new DemandWindow() };
    return sampled.open.demand;
  }

  /** The windows of a limit in the last hour that were counted in this instance, with the length of its interval. */
  windows(label: string): { readonly intervalMs: number; readonly done: readonly SampledWindow[] } | undefined {
    return this.byLabel.get(label);
  }

  /** The windows to store, at most `most`. They are handed out once: what is lost is a part of a sample. */
  take(most: number): UnsentWindow[] {
    const taken = this.unsent.slice(0, most);
    this.unsent = this.unsent.slice(most);
    return taken;
  }

  private close(label: string, sampled: Sampled, now: number): void {
    const { open, done, intervalMs } = sampled;
    sampled.open = undefined;
    if (open === undefined || open.demand.units.size === 0) return;
    done.push(open);
    const gone: number[] = [];
    while (done.length > MOST_WINDOWS || (done[0]!.window + 1) * intervalMs < now - DEMAND_MS) {
      gone.push(done.shift()!.window);
    }
    this.unsent.push({ ...open, label, intervalMs, text: writeDemand(open.demand), gone });
    if (this.unsent.length > MOST_LIMITS) this.unsent.shift();
  }
}

/** The interval of a rate in whole seconds; `undefined` for limits without one, and for those whose interval is longer than what is kept. */
export function intervalOf(options: object): number | undefined {
  const { rate, interval } = options as { readonly rate?: unknown; readonly interval?: unknown };
  const ms = interval === undefined ? undefined : milliseconds(interval);
  if (typeof rate !== 'number' || ms === undefined || ms > DEMAND_MS) return undefined;
  return Math.max(1, Math.ceil(ms / 1000)) * 1000;
}

/** Whether a window is one of those that all instances count: some of each hour, different ones for each limit. */
function isSampled(label: string, window: number, intervalMs: number): boolean {
  const every = Math.max(1, Math.floor(DEMAND_MS / intervalMs / SAMPLED_AN_HOUR));
  let offset = 0;
  for (let at = 0; at < label.length; at++) offset = (offset * 31 + label.charCodeAt(at)) % every;
  return window % every === offset;
}
