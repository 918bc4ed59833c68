import type { Feature } from '../feature.js';
import { type ReservedShares, type ReservingLimitOptions, shareKeptFrom } from './options.js';
import type { FeaturedLimit, LimitFeature, Versions } from '../../../engine/limits/limit-feature.js';
import { unitsOf, withQuota } from '../../../engine/algorithms/share.js';
import { DEFAULT_PRIORITY, PRIORITIES, type Priority } from '../../../engine/limits/arguments.js';
import { Bare } from '../../../engine/util/objects.js';

/** The parts of one limit's quota that requests may take, by priority. */
class LimitParts extends Bare implements LimitFeature {
  readonly name = 'priorities';
  readonly versions: Versions;

  constructor(
    { algorithm }: FeaturedLimit,
    private readonly reserved: ReservedShares,
  ) {
    super();
    this.versions = {
      byPriority: true,
      // The most important requests may use the whole quota.
      ofAll: { priority: PRIORITIES[0] },
      idOf: ({ priority = DEFAULT_PRIORITY }: { readonly priority?: Priority }) => priority,
      make(parameters, { priority = DEFAULT_PRIORITY }: { readonly priority?: Priority }) {
        const { quota } = parameters;
        // Other requests always get at least one unit.
        const kept = Math.min(quota - 1, unitsOf(shareKeptFrom(priority, reserved), quota));
        if (kept === 0) return undefined;
        const own = { ...withQuota(algorithm, parameters, quota - kept), kept };
        return { parameters: own, isPart: true, metBy: { priority }, line: priority };
      },
    };
  }

  ofPart(): ReservedShares {
    return this.reserved;
  }
}

/** Keeps shares of a limit's quota for important requests. */
export const priorities: Feature<ReservedShares> = {
  terms: ({ reserveFor }: ReservingLimitOptions) => reserveFor && { ...reserveFor },
  of: (limit, reserved) => new LimitParts(limit, reserved),
};
