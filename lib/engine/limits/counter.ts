import type { CompiledLimit } from './compiled-limit.js';
import type { DecidesTogether } from './limit-feature.js';
import type { Priority } from './arguments.js';
import { boundedIdentity } from './identity.js';

/** One limit's counter for one key. */
export interface Counter {
  /** The limit. */
  readonly limit: CompiledLimit;
  /** The key that is counted, such as `ip:203.0.113.7`. */
  readonly identity: string;
}

/** The request of a check to one counter. */
export interface CheckEntry extends Counter {
  /** The number of units: a whole number >= 0. An entry with cost 0 takes and writes nothing, like a `peek`. */
  readonly cost: number;
  /**
   * The importance of the request.
   * @default 'default'
   */
  readonly priority?: Priority | undefined;
}

/** Returns the feature that decides on the entries of a check together; `undefined` if each limit decides alone. */
export function togetherOf(entries: readonly CheckEntry[]): DecidesTogether | undefined {
  for (let i = 0; i < entries.length; i++) {
    const { together } = entries[i]!.limit;
    if (together !== undefined) return together;
  }
  return undefined;
}

const STARTS = '\nstarts\n';

/** The additional counter that records when reserved units start. An equal key from a user is very unlikely. */
export function startsOf<C extends Counter>(counter: C): C {
  return { ...counter, identity: STARTS + counter.identity };
}

/** Returns true if a counter records the starts of reserved units. */
export function isOfStarts({ identity }: Counter): boolean {
  return identity.startsWith(STARTS);
}

/** A counter and, if its limit supports reservations, the counter of their starts. */
export function withStarts(counter: Counter): Counter[] {
  const { reservation, queue } = counter.limit.algorithm;
  return reservation === undefined && queue === undefined ? [counter] : [counter, startsOf(counter)];
}

/** The entries, followed by those of the candidates of their limits. */
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
