import { argumentError, RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { assertKey, assertUnits } from '../../engine/limits/arguments.js';
import { type CorrectionOptions, readCorrection, readWithinOption } from '../../engine/limits/consume-options.js';
import type { Counter } from '../../engine/limits/counter.js';
import { assertPossibleKey } from '../rules/possible-keys.js';
import { levelsOf } from '../rules/resolve/call-entries.js';
import type { Rule } from '../rules/rule.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import type { Charge } from '../../storage/stores/store.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

/** A limit that code calls. */
export interface CalledLimit {
  readonly name: string;
  readonly rule: Rule;
  /** The store of its counters. */
  readonly store: Layer;
  /** The calls of this process that wait for its units. */
  readonly queues: WaitQueues;
  /** The version of the limit that was last found to be counted in this process. */
  countedHere?: CompiledLimit | undefined;
  /** The version of the limit that was last found to need the store, which is then called directly. */
  countedElsewhere?: CompiledLimit | undefined;
}

/** The error of a call that a limit does not support. */
export function unsupportedCall(message: string): RateLimitArgumentError {
  return argumentError('SLUICE_UNSUPPORTED_CALL', message);
}

/** Throws for limits whose units are leased: these are only released. */
export function refuseHeld(counters: readonly Counter[], does: 'refunded' | 'penalized' | 'reserved'): void {
  for (const { limit } of counters) {
    const { algorithm, name } = limit;
    if (algorithm.leases !== undefined) throw unsupportedCall(messages.onlyHeld(name, algorithm.name, does));
  }
}

/** Returns true if a limit has ancestors, so that calls have to pass their keys. */
export function isNested({ rule }: CalledLimit, within: unknown): boolean {
  return within !== undefined || rule.isNested;
}

/** The counter of a key that an operator or code passes without a request; throws if the limit can't have that key. */
export function namedCounter({ rule }: CalledLimit, key: string): Counter {
  assertKey(key);
  assertPossibleKey(rule, key);
  return { limit: rule.limitFor(key), identity: key };
}

/** The counter of the limit itself, for operations on it alone. `isNamed`: throws for keys that the limit can't have. */
export function ownCounter(limit: CalledLimit, key: string, options: unknown, isNamed = false): Counter {
  return countersOf(limit, key, readWithinOption(options), isNamed)[0]!;
}

/** The counters of a key at all levels, the limit's own first. `isNamed`: throws for keys that the limits can't have. */
function countersOf({ rule }: CalledLimit, key: string, within: unknown, isNamed: boolean): readonly Counter[] {
  const levels = levelsOf(rule, key, { within });
  if (isNamed) for (const level of levels) assertPossibleKey(level.rule, level.key);
  return levels.map((level) => ({ limit: level.rule.limitFor(level.identity), identity: level.identity }));
}

/**
 * Corrections of the counters at all levels by a number of units, in the version for a tenant if one is given. `undoes`: the units were
 * taken by code and may have any key, unless an operator gives them back.
 */
export function corrections(
  limit: CalledLimit,
  key: string,
  units: number,
  options: CorrectionOptions | undefined,
  undoes = false,
): readonly Charge[] {
  assertKey(key);
  const { share, within, strict } = readCorrection(options);
  assertUnits(units);
  return countersOf(limit, key, within, !undoes || strict === true).map(({ limit: whole, identity }, index) => {
    const isOwn = share !== undefined && index === 0;
    return { limit: isOwn ? limit.rule.limitForShare(identity, share) : whole, identity, units, strict };
  });
}
