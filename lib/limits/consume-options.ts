import { RateLimitArgumentError } from '../errors/errors.js';
import { priorityMessages } from '../errors/priority-messages.js';
import { shareMessages } from '../errors/share-messages.js';
import { assertCost } from './arguments.js';
import { assertPriority, type Priority } from './priority.js';

/** The units that a call asks for, how important it is, and whose they are. */
export interface ConsumeOptions {
  /**
   * Units: a whole number >= 1.
   * @default the limit's own cost, or 1
   */
  cost?: number;
  /**
   * How important the call is. It matters to limits with `reserveFor`, which keep a share of their quota for important ones.
   * @default the limit's own priority, or 'default'
   */
  priority?: Priority;
  /**
   * The tenant that asks, where the limit has the option `share`: any string that is not empty. Such a limit cannot do without,
   * and no other takes it.
   */
  share?: string;
}

/** Whose units a call gives back or charges. */
export interface OfTenant {
  /**
   * The tenant, where the limit has the option `share`: what it used is less or more, too.
   * @default nobody: only the total changes
   */
  share?: string;
}

/** Reads whose units a call gives back or charges. */
export function tenantOf(given: OfTenant | undefined): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null) {
    throw new RateLimitArgumentError(shareMessages.notOfTenant(given));
  }
  const other = Object.keys(given).find((option) => option !== 'share');
  if (other !== undefined) throw new RateLimitArgumentError(priorityMessages.unknownMember(other, ['share']));
  return given.share;
}

/** The options of every call that asks for units. */
export const CONSUME_OPTIONS = ['cost', 'priority', 'share'] as const satisfies readonly (keyof ConsumeOptions)[];

const NO_OTHERS: readonly string[] = [];

/** What a call asks for. */
export interface Asked {
  readonly cost: number;
  readonly priority: Priority | undefined;
  readonly share: string | undefined;
}

/** What a call asks for, where it is silent. */
export interface AskedByDefault {
  readonly fixedCost: number;
  readonly fixedPriority: Priority | undefined;
}

/** Reads what a call asks for: a number of units, or options, of which it may have `others`, too. */
export function askedOf(
  given: number | ConsumeOptions | undefined,
  byDefault: AskedByDefault,
  others: readonly string[] = NO_OTHERS,
): Asked {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) {
    return readOptions(given, byDefault, others);
  }
  const cost: unknown = given === undefined ? byDefault.fixedCost : given;
  assertCost(cost);
  return { cost, priority: byDefault.fixedPriority, share: undefined };
}

function readOptions(
  given: ConsumeOptions,
  { fixedCost, fixedPriority }: AskedByDefault,
  others: readonly string[],
): Asked {
  for (const option of Object.keys(given)) {
    if ((CONSUME_OPTIONS as readonly string[]).includes(option) || others.includes(option)) continue;
    throw new RateLimitArgumentError(priorityMessages.unknownMember(option, [...CONSUME_OPTIONS, ...others]));
  }
  const { cost = fixedCost, priority = fixedPriority, share } = given;
  assertCost(cost);
  if (priority !== undefined) assertPriority(priority);
  return { cost, priority, share };
}
