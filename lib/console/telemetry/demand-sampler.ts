import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { milliseconds } from '../../engine/options/values.js';

/** Maximum number of keys per window whose units are counted. */
export const MOST_KEYS = 128;
/** One more than the largest hash. */
export const ALL_HASHES = 2 ** 32;

/** The units that the keys of a limit requested in one interval: of all keys, or of those with a hash below a bound. */
export interface KeyDemand {
  /** All keys with a smaller hash were counted. They are the same in every window and instance with this bound. */
  readonly below: number;
  /** Units by hash of the key. */
  readonly units: ReadonlyMap<number, number>;
}

/**
 * Counts the units that keys request, in limited memory: if there are too many keys, only those with a small hash are still counted. Their
 * numbers are exact, and they are a random sample of all keys, the same one in other windows and instances (consistent sampling: P. B.
 * Gibbons, "Distinct sampling for highly-accurate answers to distinct values queries and event reports", VLDB 2001).
 */
export class DemandWindow implements KeyDemand {
  readonly units = new Map<number, number>();
  below = ALL_HASHES;

  add(key: string, units: number): void {
    const hash = hash32(key);
    if (hash >= this.below) return;
    this.units.set(hash, (this.units.get(hash) ?? 0) + units);
    while (this.units.size > MOST_KEYS) this.narrow();
  }

  private narrow(): void {
    this.below /= 2;
    for (const hash of this.units.keys()) if (hash >= this.below) this.units.delete(hash);
  }
}

/** Adds up the demand of several instances in the same interval. Keys that some instance did not count are left out. */
export function mergeDemand(parts: readonly KeyDemand[]): KeyDemand {
  const below = Math.min(ALL_HASHES, ...parts.map((part) => part.below));
  const units = new Map<number, number>();
  for (const part of parts) {
    for (const [hash, count] of part.units) if (hash < below) units.set(hash, (units.get(hash) ?? 0) + count);
  }
  return { below, units };
}

/** The stored form: `[below, hash, units, hash, units, …]` as JSON. */
export function writeDemand({ below, units }: KeyDemand): string {
  return JSON.stringify([below, ...[...units].flat()]);
}

/** Reads a stored window; `undefined` if it isn't one, for example if another release wrote it. */
export function readDemand(text: unknown): KeyDemand | undefined {
  try {
    const [below, ...rest] = JSON.parse(String(text)) as unknown[];
    if (![below, ...rest].every((value) => Number.isSafeInteger(value) && (value as number) >= 0)) return undefined;
    if (rest.length % 2 !== 0 || rest.length > 2 * MOST_KEYS) return undefined;
    const units = new Map<number, number>();
    for (let at = 0; at < rest.length; at += 2) units.set(rest[at] as number, rest[at + 1] as number);
    return { below: below as number, units };
  } catch {
    return undefined;
  }
}

/** FNV-1a over UTF-16 code units, with the final mixing of MurmurHash3, so that each bit of a key affects each bit of its hash. */
function hash32(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** How long counts are kept. */
export const DEMAND_MS = 3_600_000;
/** The number of windows per hour that are counted. While one is counted, each decision of the limit costs more. */
const SAMPLED_AN_HOUR = 6;
/** Maximum number of windows of a limit to keep, including those counted for viewers. */
export const MOST_WINDOWS = 64;
/** Maximum number of limits whose demand is counted. */
const MOST_LIMITS = 500;
/** If counting starts later than this in a window, the window is incomplete. */
const LATE_MS = 900;

/** A window, by its number of intervals since the epoch. */
export interface SampledWindow {
  readonly window: number;
  readonly demand: KeyDemand;
}

export interface UnsentWindow extends SampledWindow {
  readonly label: string;
  readonly intervalMs: number;
  readonly text: string;
  /** Windows of this limit that are no longer kept. */
  readonly gone: readonly number[];
}

interface Sampled {
  readonly intervalMs: number;
  readonly done: SampledWindow[];
  open: { readonly window: number; readonly demand: DemandWindow } | undefined;
}

/** Counts the demand of each limit's keys in some of its intervals. All instances count in the same intervals. */
export class DemandSampler {
  private readonly byLabel = new Map<string, Sampled>();
  private unsent: UnsentWindow[] = [];

  /**
   * @param isWatched returns true while somebody views the demand of a limit; every interval is counted then
   */
  constructor(private readonly isWatched: (label: string) => boolean) {}

  /**
   * The current window of a limit; `undefined` if it isn't counted. Called for each limit at the start of each second, on the Redis
   * server's clock.
   */
  windowOf(label: string, limit: CompiledLimit, now: number): DemandWindow | undefined {
    const intervalMs = intervalOf(limit.options);
    if (intervalMs === undefined) return undefined;
    let sampled = this.byLabel.get(label);
    if (sampled?.intervalMs !== intervalMs) {
      if (sampled === undefined && this.byLabel.size >= MOST_LIMITS) return undefined;
      // Counts per another interval are useless for this one.
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

  /** The windows of a limit that this instance counted in the last hour, and the length of its interval. */
  windows(label: string): { readonly intervalMs: number; readonly done: readonly SampledWindow[] } | undefined {
    return this.byLabel.get(label);
  }

  /** Returns the windows to store, at most `most`, and only once: a lost window only makes the sample smaller. */
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

/** The rate of a limit and its interval in milliseconds; `undefined` for a limit without them. */
export function rateOf(options: object): { readonly rate: number; readonly ms: number } | undefined {
  const { rate, interval } = options as { readonly rate?: unknown; readonly interval?: unknown };
  const ms = milliseconds(interval);
  return typeof rate === 'number' && ms !== undefined ? { rate, ms } : undefined;
}

/** The interval of a rate in whole seconds; `undefined` for limits without one, or with a longer one than is kept. */
export function intervalOf(options: object): number | undefined {
  const found = rateOf(options);
  return found && found.ms <= DEMAND_MS ? Math.max(1, Math.ceil(found.ms / 1000)) * 1000 : undefined;
}

/** Returns true if all instances count a window: some in each hour, different ones for each limit. */
function isSampled(label: string, window: number, intervalMs: number): boolean {
  const every = Math.max(1, Math.floor(DEMAND_MS / intervalMs / SAMPLED_AN_HOUR));
  let offset = 0;
  for (let at = 0; at < label.length; at++) offset = (offset * 31 + label.charCodeAt(at)) % every;
  return window % every === offset;
}
