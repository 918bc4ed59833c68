import type { Anchor } from '../algorithms/anchor.js';
import { argumentError, RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { priorityMessages, upToMessages, withinMessages } from '../errors/messages/calls.js';
import { assertCost, assertPriority, type Priority } from './arguments.js';

/** The keys of a limit's parents. */
export interface WithinOptions {
  /**
   * The key of each parent limit, by its name: `{ team: 't1', org: 'o1' }`. Required for a limit with the option `within`, and not allowed
   * for others.
   */
  within?: Readonly<Record<string, string>> | undefined;
}

/** The options of every call that takes units: cost, priority, tenant and anchor. */
export interface CallOptions extends WithinOptions {
  /**
   * The number of units: a whole number >= 0. A call with cost 0 takes no units and is decided like a `peek`.
   * @default the limit's own cost, or 1
   */
  cost?: number | undefined;
  /**
   * The importance of the call. It affects limits with `reserveFor`, which reserve a share of their quota for important calls.
   * @default the limit's own priority, or 'default'
   */
  priority?: Priority | undefined;
  /**
   * The tenant of the call, for a limit with the option `share`: any non-empty string. Required for such a limit, and not allowed for
   * others.
   */
  share?: string | undefined;
  /**
   * The start of the key's windows, for a limit whose `anchor` is a function of the request: a date, or `null` for the calendar's own
   * windows. Required for such a limit, except by `peek`, which reads the current window if it is missing; not allowed for others.
   */
  anchor?: Anchor | null | undefined;
}

/** The options of `consume`, `consumeSync`, `peek` and `LimiterService.check`. */
export interface ConsumeOptions extends CallOptions {
  /**
   * Takes as many units as are available, up to this number, instead of `cost`: a whole number >= 1. The decision contains `taken`. It is
   * allowed if at least one unit was available; otherwise it is rejected like a request for one unit. For a nested limit, and for a check
   * of several limits, the same number is taken from each of them; a limit in shadow mode does not reduce it. Not for `concurrency` and
   * `adaptive`, whose units are held. In a check, either all limits have it or none.
   * @default `cost` units or none
   */
  upTo?: number | undefined;
}

/** The tenant whose units a call refunds or charges. */
export interface OfTenant {
  /**
   * The tenant, for a limit with the option `share`. The tenant's usage changes along with the total.
   * @default none: only the total changes
   */
  share?: string | undefined;
}

/** The options of `refund` and `penalize`. */
export interface CorrectionOptions extends OfTenant, WithinOptions {
  /**
   * If true, the call rejects with `RateLimitStoreError` while the store cannot be reached, regardless of `onStoreError`: for operators who
   * rely on the result.
   * @default false: with `'local'` it acts in this process, with `'allow'` it does nothing
   */
  strict?: boolean | undefined;
}

/** The names of the options of every call that takes units. */
export const CONSUME_OPTIONS = [
  'cost',
  'priority',
  'share',
  'anchor',
  'within',
] as const satisfies readonly (keyof CallOptions)[];

/** The additional options of a call that may take as many units as are available. */
export const UP_TO_OPTIONS = ['upTo'] as const satisfies readonly (keyof ConsumeOptions)[];

/** Reads the options of a call that only accepts the keys of the limit's parents. */
export function readWithinOption(given: unknown): unknown {
  return readMembers<WithinOptions>(given, ['within'], withinMessages.wrongOptions).within;
}

/** Reads the tenant of a correction, and `strict`. */
export function readCorrection(
  given: unknown,
): OfTenant & { readonly within?: unknown; readonly strict?: boolean | undefined } {
  const read = readMembers<CorrectionOptions>(given, ['share', 'within', 'strict'], messages.notOfTenant);
  const strict: unknown = read.strict;
  if (strict !== undefined && typeof strict !== 'boolean') {
    throw new RateLimitArgumentError(messages.wrongStrict(strict));
  }
  return read;
}

/**
 * Reads an object with known members, if there is one. Throws `RateLimitArgumentError`; `wrong` is the message for a value that isn't an
 * object.
 */
export function readMembers<T extends object>(
  given: unknown,
  known: readonly (keyof T & string)[],
  wrong: (given: unknown) => string,
): Partial<T> {
  if (given === undefined) return {};
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new RateLimitArgumentError(wrong(given));
  }
  refuseUnknownMembers(given, known);
  return given;
}

/** Throws `RateLimitArgumentError` for an unknown member. */
export function refuseUnknownMembers(given: object, known: readonly string[], others = NO_OTHERS): void {
  for (const member in given) {
    if (known.includes(member) || others.includes(member) || !Object.hasOwn(given, member)) continue;
    throw argumentError('SLUICE_UNKNOWN_OPTION', priorityMessages.unknownMember(member, [...known, ...others]));
  }
}

const NO_OTHERS: readonly string[] = [];

/** The options of a call after reading, including defaults. */
export interface Asked {
  readonly cost: number;
  readonly priority: Priority | undefined;
  readonly share: string | undefined;
  readonly anchor: Anchor | null | undefined;
  /** The keys of the limit's parents, not read yet. */
  readonly within: unknown;
  /** True if the call sets the cost itself. */
  readonly hasCost: boolean;
  /** True if the call sets the priority itself. */
  readonly hasPriority: boolean;
  /** True if the call takes as many units as are available, up to the cost. */
  readonly upTo?: boolean | undefined;
}

/** The defaults of calls, which come from their limit. */
export interface AskedByDefault {
  readonly fixedCost: number;
  readonly fixedPriority: Priority | undefined;
}

/** Reads the argument of a call: a number of units, or options, which may include `others`. */
export function askedOf(
  given: number | ConsumeOptions | undefined,
  byDefault: AskedByDefault,
  others: readonly string[] = NO_OTHERS,
): Asked {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) {
    refuseUnknownMembers(given, CONSUME_OPTIONS, others);
    const asked = readAsked(given, byDefault);
    const most = readUpTo(given);
    return most === undefined ? asked : { ...asked, cost: most, hasCost: true, upTo: true };
  }
  const cost = readUnits(given, byDefault);
  const hasCost = given !== undefined;
  const { fixedPriority: priority } = byDefault;
  return { cost, priority, share: undefined, anchor: undefined, within: undefined, hasCost, hasPriority: false };
}

/** Reads the number of units of a call without options. Throws `RateLimitArgumentError`. */
export function readUnits(given: unknown, { fixedCost }: AskedByDefault): number {
  const cost = given === undefined ? fixedCost : given;
  assertCost(cost);
  return cost;
}

/** Reads the maximum number of units of a call with `upTo`. Throws `RateLimitArgumentError`. */
export function readUpTo({ upTo, cost }: ConsumeOptions): number | undefined {
  if (upTo === undefined) return undefined;
  if (cost !== undefined) throw argumentError('SLUICE_EXCLUDED_OPTIONS', upToMessages.withCost(cost, upTo));
  if (!Number.isSafeInteger(upTo) || upTo < 1) throw argumentError('SLUICE_INVALID_COST', upToMessages.wrongUpTo(upTo));
  return upTo;
}

/** Reads the options of a call. Other members are ignored. */
export function readAsked(given: ConsumeOptions, { fixedCost, fixedPriority }: AskedByDefault): Asked {
  const { cost = fixedCost, priority = fixedPriority, share, anchor, within } = given;
  assertCost(cost);
  if (priority !== undefined) assertPriority(priority);
  const hasCost = given.cost !== undefined;
  return { cost, priority, share, anchor, within, hasCost, hasPriority: given.priority !== undefined };
}
