import { keyText, type LimitKey } from '../../../engine/limits/identity.js';
import { number, object, orFunction, readLater, whole, words } from '../../../engine/options/kinds.js';
import type { OptionKind, OptionRows } from '../../../engine/options/option-row.js';

/** The tenants that share the units of a counter, and their weights. */
export interface ShareOptions {
  /**
   * Finds the tenant of a request: any form of a limit's `key`, such as `'user'`, `'header:x-tenant'` or a function of the context. The
   * limit's `onMissingKey` applies to requests without a tenant.
   */
  by: LimitKey;
  /**
   * The weights of tenants, whole numbers from 1 to 1,000,000: an object by tenant, with a weight of 1 for tenants that are not listed, or
   * a function of the tenant. Tenants have the names that `by` returns: `user:42` for `'user'`. For a header, an object may use its values
   * as names; a function gets their `headerIdentity`.
   * @default 1 for each tenant
   */
  weight?: (Readonly<Record<string, number>> | ((tenant: string) => number)) | undefined;
  /**
   * How tenants that the object `weight` doesn't list are counted: `'each'` on its own, or all `'together'` as one tenant of weight 1. With
   * `'together'`, made-up names take nothing from the listed tenants.
   * @default 'each'
   */
  unlisted?: 'each' | 'together' | undefined;
  /**
   * The share of the quota that each active tenant may always use, regardless of the weights: 0 to 1. The parts may then add up to more
   * than the quota; the total never exceeds it.
   * @default 0
   */
  floor?: number | undefined;
}

/** The `share` option of limits whose units tenants share. */
export interface SharedLimitOptions {
  /**
   * Shares the units of a counter fairly among tenants. While there is room, any tenant may take it; under contention, each active tenant
   * gets a part of the quota in proportion to its weight. A `sliding-window` that is always full lets slices / (slices + 1) of its rate
   * pass: 91 % with its default of 10 slices. Only for `sliding-window`, `token-bucket` and `gcra`; not with refill `'intervally'`,
   * `prefetch`, `blockFor` or `candidate`.
   * @default units are not divided: first come, first served
   */
  share?: ShareOptions | undefined;
}

/** Options of algorithms, some of which support tenants. */
export type WithShares<Options> = Options extends { algo: 'sliding-window' | 'token-bucket' | 'gcra' }
  ? Options & SharedLimitOptions
  : Options;

const MAX_WEIGHT = 1_000_000;
export const tenantWeight = whole(1, MAX_WEIGHT);
const weights: OptionKind = {
  expected: `an object of whole numbers >= 1 and <= ${MAX_WEIGHT} by tenant`,
  isValid: (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    const given = Object.values(value);
    return given.length > 0 && given.every(tenantWeight.isValid);
  },
  schema: { type: 'object', minProperties: 1, additionalProperties: tenantWeight.schema },
  named: tenantWeight,
};

export const shareOptions = {
  share: {
    kind: object("{ by, weight?, unlisted?, floor? } such as { by: 'header:x-tenant', floor: 0.05 }", {
      by: {
        kind: readLater(keyText),
        text: "The tenant of a request: 'ip', 'user', 'global' or 'header:<name>'.",
        required: true,
      },
      weight: {
        kind: orFunction(weights, 'a function of the tenant'),
        text: "The weights of tenants, by name: 'user:42', or the value of the header.",
        usual: '1 for each',
      },
      unlisted: {
        kind: words(['each', 'together']),
        text: "How tenants without a 'weight' count: each one separately, or all together.",
        default: 'each',
      },
      floor: {
        kind: number('a number >= 0 and <= 1', { minimum: 0, maximum: 1 }),
        text: 'The share of the quota that each active tenant can always use.',
        default: 0,
      },
    }),
    text: 'Shares the units among tenants: if they compete, each gets a part according to its weight.',
    usual: 'first come',
    for: ({ sharing }) => sharing !== undefined,
    // These decide for all tenants at once, or take units in advance.
    excludes: [
      'prefetch',
      'blockFor',
      'candidate',
      'reserveFor',
      'warmUp',
      'hold',
      { option: 'refill', value: 'intervally' },
    ],
  },
} as const satisfies OptionRows;
