import type { CompiledLimit } from './compiled-limit.js';
import { boundedIdentity } from './identity.js';
import type { Priority } from './priority.js';

/** One limit's counter for one identity. */
export interface Counter {
  /** The limit. */
  readonly limit: CompiledLimit;
  /** Whom it counts, such as `ip:203.0.113.7`. */
  readonly identity: string;
}

/** What a check asks of one counter. */
export interface CheckEntry extends Counter {
  /** Units: a whole number >= 0. An entry of 0 takes nothing and writes nothing, as if it only looked. */
  readonly cost: number;
  /**
   * How important it is.
   * @default 'default'
   */
  readonly priority?: Priority | undefined;
}

const STARTS = '\nstarts\n';

/** The counter beside another one that counts when what was reserved starts. No identity of a user's is likely to be this one. */
export function startsOf<C extends Counter>(counter: C): C {
  return { ...counter, identity: STARTS + counter.identity };
}

/** Whether a counter is one of starts. */
export function isOfStarts({ identity }: Counter): boolean {
  return identity.startsWith(STARTS);
}

/** A counter, and that of the starts of what it reserves, if it can. */
export function withStarts(counter: Counter): Counter[] {
  const { reservation, queue } = counter.limit.algorithm;
  return reservation === undefined && queue === undefined ? [counter] : [counter, startsOf(counter)];
}

/** Tells a counter from all others, in this process. Its length is bounded. */
export function counterId({ id }: CompiledLimit, identity: string): string {
  return id + boundedIdentity(identity);
}

/** The same, but of all generations of the limit at once. */
export function lineageId({ lineage }: CompiledLimit, identity: string): string {
  return lineage + boundedIdentity(identity);
}
