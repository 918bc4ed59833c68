import type { Tenant } from '../algorithms/fair-share.js';
import { givenOptions } from '../algorithms/options.js';
import type { CommonLimitOptions } from '../config/common-limit-options.js';
import type { SharedLimitOptions, ShareOptions } from '../config/limit-definition.js';
import { RateLimitArgumentError, RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { shareMessages } from '../errors/messages/share.js';
import { identityOfValue } from '../key-resolvers/index.js';
import { plainIdentity } from '../limits/identity.js';
import { isPromise } from '../util/awaitable.js';

const OPTIONS = ['by', 'weight', 'unlisted', 'floor'] as const satisfies readonly (keyof ShareOptions)[];
/** What excludes shares: it decides for all tenants at once, or takes units in advance. */
const EXCLUDED = ['prefetch', 'blockFor', 'candidate', 'reserveFor'] as const;
export const MAX_WEIGHT = 1_000_000;
/** All tenants that count together; no tenant's own name has a star. */
const UNLISTED: Tenant = { id: '*', weight: 1 };

/** A limit's `share`, as it was read, but for whom it counts. */
export interface SharePlan {
  readonly floor: number;
  /** The tenant of a name. Throws `RateLimitArgumentError` for a wrong weight or no name. */
  tenant(name: unknown, limit: string): Tenant;
}

/** Reads a limit's `share`. */
export function shareTerms(
  options: Pick<CommonLimitOptions, 'prefetch' | 'blockFor' | 'candidate' | 'reserveFor'> & SharedLimitOptions,
  location: string,
): SharePlan | undefined {
  const { share } = options;
  if (share === undefined) return undefined;
  if (typeof share !== 'object' || share === null || Array.isArray(share)) {
    throw new RateLimitConfigError(messages.wrongOption(location, 'share', share, shareMessages.wants()));
  }
  const within = `${location}.share`;
  for (const name of Object.keys(share)) {
    if (!(OPTIONS as readonly string[]).includes(name)) {
      throw new RateLimitConfigError(messages.unknownOption(within, name, OPTIONS));
    }
  }
  const { by, weight, unlisted = 'each', floor = 0 } = givenOptions(share, OPTIONS);
  if (by === undefined) throw new RateLimitConfigError(messages.missingOption(within, 'by', "a key such as 'user'"));
  const refuse = (option: string, got: unknown, wants: string): never => {
    throw new RateLimitConfigError(messages.wrongOption(within, option, got, wants));
  };
  if (weight !== undefined && typeof weight !== 'function' && !isWeights(weight)) {
    refuse('weight', weight, shareMessages.weightWants());
  }
  if (unlisted !== 'each' && (unlisted !== 'together' || typeof weight !== 'object')) {
    refuse('unlisted', unlisted, shareMessages.unlistedWants());
  }
  if (typeof floor !== 'number' || !(floor >= 0 && floor <= 1)) refuse('floor', floor, shareMessages.floorWants());
  const weights = typeof weight === 'object' ? byIdentity(weight, by, refuse) : undefined;
  const tenants = (weights?.size ?? 0) + (unlisted === 'together' ? 1 : 0);
  if (floor * tenants > 1) refuse('floor', floor, shareMessages.floorsTooMany(tenants));
  for (const other of EXCLUDED) {
    if (options[other] !== undefined) throw new RateLimitConfigError(shareMessages.shareWith(location, other));
  }
  return {
    floor,
    tenant(name, limit) {
      if (typeof name !== 'string' || name === '') throw new RateLimitArgumentError(shareMessages.wrongTenant(name));
      if (unlisted === 'together' && weights?.has(name) === false) return UNLISTED;
      const own: unknown = typeof weight === 'function' ? weight(name) : (weights?.get(name) ?? 1);
      if (!isWeight(own)) throw notAWeight(limit, name, own);
      return { id: plainIdentity(name), weight: own };
    },
  };
}

/** The weights by the identities of the tenants. */
function byIdentity(
  weight: Readonly<Record<string, number>>,
  by: unknown,
  refuse: (option: string, got: unknown, wants: string) => never,
): ReadonlyMap<string, number> {
  const named = Object.entries(weight).map(([name, own]) => [identityOfValue(by, name), own, name] as const);
  const never = named.flatMap(([identity, , name]) => (identity === undefined ? [name] : []));
  if (never.length > 0) refuse('weight', weight, shareMessages.neverFound(never, by as string));
  return new Map(named.map(([identity, own]) => [identity!, own]));
}

function notAWeight(limit: string, tenant: string, got: unknown): RateLimitArgumentError {
  // What a promise would have failed with is of no interest: it is no weight in any case.
  if (isPromise(got)) void Promise.resolve(got).catch(() => undefined);
  return new RateLimitArgumentError(shareMessages.wrongWeight(limit, tenant, got));
}

/** Whether a value is an object of weights by tenant. */
export function isWeights(value: unknown): value is Readonly<Record<string, number>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const weights = Object.values(value);
  return weights.length > 0 && weights.every(isWeight);
}

function isWeight(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MAX_WEIGHT;
}
