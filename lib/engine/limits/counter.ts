import type { CompiledLimit } from './compiled-limit.js';
import type { DecidesTogether } from './limit-feature.js';
import type { Priority } from './priority.js';
import { boundedIdentity } from './identity.js';

/** One limit's counter for one identity. */
export interface Counter {
  /** The limit. */
  readonly limit: CompiledLimit;
  /** Who it counts, such as `ip:203.0.113.7`. */
  readonly identity: string;
}

/** What a check asks of one counter. */
export interface CheckEntry extends Counter {
  /** Units: a whole number >= 0. An entry of 0 units takes and writes nothing, like a `peek`. */
  readonly cost: number;
  /**
   * How important the request is.
   * @default 'default'
   */
  readonly priority?: Priority | undefined;
}

/** What decides on the entries of a check together; nothing if each limit decides alone. */
export function togetherOf(entries: readonly CheckEntry[]): DecidesTogether | undefined {
  for (let i = 0; i < entries.length; i++) {
    const { together } = entries[i]!.limit;
    if (together !== undefined) return together;
  }
  return undefined;
}

const STARTS = '\nstarts\n';

/** The counter beside another one that counts when reserved units start. No identity of a user is likely to equal this one. */
export function startsOf<C extends Counter>(counter: C): C {
  return { ...counter, identity: STARTS + counter.identity };
}

/** Whether a counter counts starts. */
export function isOfStarts({ identity }: Counter): boolean {
  return identity.startsWith(STARTS);
}

/** A counter and, if it can reserve, the counter of its starts. */
export function withStarts(counter: Counter): Counter[] {
  const { reservation, queue } = counter.limit.algorithm;
  return reservation === undefined && queue === undefined ? [counter] : [counter, startsOf(counter)];
}

/** Entries, and behind them those of the candidates of their limits. */
export function withCandidates<E extends CheckEntry>(entries: readonly E[]): E[] {
  const all = entries.slice();
  for (const entry of entries)
    if (entry.limit.candidate !== undefined) all.push({ ...entry, limit: entry.limit.candidate });
  return all;
}

/** Identifies a counter within this process. Its length is bounded. */
export function counterId({ id }: Pick<CompiledLimit, 'id'>, identity: string): string {
  return id + boundedIdentity(identity);
}

/** The same for all generations of the limit together. */
export function lineageId({ lineage }: CompiledLimit, identity: string): string {
  return lineage + boundedIdentity(identity);
}
