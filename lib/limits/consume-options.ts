import type { Anchor } from '../algorithms/anchor.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { priorityMessages } from '../errors/priority-messages.js';
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
  /**
   * Where the windows of the key begin, where the limit's `anchor` is a function of the request: a date, or `null` for the calendar's
   * own windows. Such a limit cannot do without, but to `peek`, which then looks at the window that runs; no other takes it.
   */
  anchor?: Anchor | null;
}

/** The options of every call that asks for units. */
export const CONSUME_OPTIONS = [
  'cost',
  'priority',
  'share',
  'anchor',
] as const satisfies readonly (keyof ConsumeOptions)[];

const NO_OTHERS: readonly string[] = [];

/** What a call asks for. */
export interface Asked {
  readonly cost: number;
  readonly priority: Priority | undefined;
  readonly share: string | undefined;
  readonly anchor: Anchor | null | undefined;
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
  return { cost, priority: byDefault.fixedPriority, share: undefined, anchor: undefined };
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
  const { cost = fixedCost, priority = fixedPriority, share, anchor } = given;
  assertCost(cost);
  if (priority !== undefined) assertPriority(priority);
  return { cost, priority, share, anchor };
}
