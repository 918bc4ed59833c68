import { RateLimitArgumentError } from '../errors/errors.js';
import { shareMessages } from '../errors/share-messages.js';
import { assertCost } from './arguments.js';

/** The units that a call asks for, and whose they are. */
export interface ConsumeOptions {
  /**
   * Units: a whole number >= 1.
   * @default the limit's own cost, or 1
   */
  cost?: number;
  /**
   * The tenant that asks, where the limit has the option `share`: any string that is not empty. Such a limit cannot do without,
   * and no other takes it.
   */
  share?: string;
}

/** The options of every call that asks for units. */
export const CONSUME_OPTIONS = ['cost', 'share'] as const satisfies readonly (keyof ConsumeOptions)[];

/** What a call asks for. */
export interface Asked {
  readonly cost: number;
  readonly share: string | undefined;
}

/** What a call asks for, where it is silent. */
export interface AskedByDefault {
  readonly fixedCost: number;
}

/** Reads what a call asks for: a number of units, or options, of which it may have `others`, too. */
export function askedOf(
  given: number | ConsumeOptions | undefined,
  { fixedCost }: AskedByDefault,
  others: readonly string[] = [],
): Asked {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const cost: unknown = given === undefined ? fixedCost : given;
    assertCost(cost);
    return { cost, share: undefined };
  }
  for (const option of Object.keys(given)) {
    if ((CONSUME_OPTIONS as readonly string[]).includes(option) || others.includes(option)) continue;
    throw new RateLimitArgumentError(shareMessages.unknownMember(option, [...CONSUME_OPTIONS, ...others]));
  }
  const { cost = fixedCost, share } = given;
  assertCost(cost);
  return { cost, share };
}
