import type { LimitDefinition } from '../../../app/config/limit-definition.js';
import { listedLimits } from '../../../app/limiter/limit-checks.js';
import { checkValue, knownOptions, wholeNumber } from '../../../engine/options/check-options.js';
import { callableOrClass } from '../../../engine/options/kinds.js';
import type { OptionKind } from '../../../engine/options/option-row.js';

/** A field whose weight a function chooses. */
export interface WeighedField {
  /** The type that has the field, such as `'Query'`. */
  readonly type: string;
  /** The name of the field. */
  readonly name: string;
  /** The arguments of this selection, as its resolver gets them. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The type of its values, without list and non-null, such as `'Book'`. */
  readonly returns: string;
}

/** The points that operations cost. */
export interface QueryCostOptions {
  /**
   * The limits that count the points: the name of a defined limit, a definition, or a list of these. Their own `key`, `skip` and `mode`
   * apply; the points replace their `cost`. `concurrency` and `adaptive` limits, and limits with `count`, are not supported.
   */
  limit: string | LimitDefinition | readonly (string | LimitDefinition)[];
  /**
   * Returns the points of one value of a field: a number >= 0. If it returns `undefined` or throws, `@cost` and the other options apply.
   * @default the directive `@cost(weight: …)` of the field or of its type; otherwise `mutation`, `object` or `scalar`
   */
  weight?: (field: WeighedField) => number | undefined;
  /**
   * The points of an object, for fields without a weight: a number >= 0.
   * @default 1
   */
  object?: number;
  /**
   * The points of a scalar or an enum, for fields without a weight: a number >= 0.
   * @default 0
   */
  scalar?: number;
  /**
   * The points of each field of `Mutation` without a weight, regardless of its type: a number >= 0.
   * @default 10
   */
  mutation?: number;
  /**
   * The assumed number of values in a list that has neither `@listSize` nor an argument `first`, `last` or `limit`: a whole number >= 1.
   * @default 10
   */
  listSize?: number;
}

/** Options that have been checked, with defaults filled in. */
export interface QueryCostSettings extends Required<Omit<QueryCostOptions, 'limit' | 'weight'>> {
  readonly limits: readonly (string | LimitDefinition)[];
  readonly weight: QueryCostOptions['weight'];
}

/** The options of `RateLimitGraphqlModule`. */
export interface RateLimitGraphqlOptions {
  /**
   * Gives operations a cost.
   * @default they cost nothing
   */
  cost?: QueryCostOptions;
}

const KNOWN = ['limit', 'weight', 'object', 'scalar', 'mutation', 'listSize'] as const;
/** A later step reads it. */
const LIMIT: OptionKind = {
  expected: 'the name of a defined limit, a definition, or a list of these',
  isValid: () => true,
};
const WEIGHT = callableOrClass('a function of a field');
const POINTS: OptionKind<number> = { expected: 'a number >= 0', isValid: isWeight };

/** Reads the options of the module. Throws `RateLimitConfigError`. */
export function readGraphqlOptions(given: unknown, location: string): QueryCostSettings | undefined {
  const { cost } = knownOptions<{ cost?: unknown }>(location, given, ['cost']);
  return cost === undefined ? undefined : readCost(cost, `${location}.cost`);
}

function readCost(given: unknown, location: string): QueryCostSettings {
  const options = knownOptions<Partial<QueryCostOptions>>(location, given, KNOWN);
  const { limit, weight, object = 1, scalar = 0, mutation = 10, listSize = 10 } = options;
  checkValue(location, 'limit', limit, LIMIT);
  if (weight !== undefined) checkValue(location, 'weight', weight, WEIGHT);
  for (const [option, value] of Object.entries({ object, scalar, mutation }))
    checkValue(location, option, value, POINTS);
  wholeNumber(location, 'listSize', listSize);
  return { limits: listedLimits(limit, `${location}.limit`), weight, object, scalar, mutation, listSize };
}

/** Returns true if a value can be the weight of a field. */
export function isWeight(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value < Infinity;
}
