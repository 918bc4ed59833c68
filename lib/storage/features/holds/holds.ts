import type { Feature } from '../feature.js';
import { heldNow, type HoldersKept } from '../held-now.js';
import type { Holds } from './held-units.js';
import { HOLDS_END, LimitHolds } from './limit-holds.js';
import { holdTerms } from './terms.js';

/** `lua/features/holds.lua` documents the stored data. */
const HOLDS: HoldersKept = {
  name: 'holds',
  inMemory: ({ estimates }, now) => (estimates as Holds | undefined)?.running(now, Infinity) ?? [],
  key: (counterKey) => `${counterKey}:${HOLDS_END}`,
};

/** Holds units that are reserved at an estimate, until they are settled or lapse. */
export const holds: Feature = {
  ofOptions(limit, others, location) {
    const terms = holdTerms(limit, others, location);
    return terms && new LimitHolds(terms);
  },
  explained: (store, counter) =>
    counter.limit.features?.some((feature) => feature instanceof LimitHolds) === true
      ? heldNow(store, counter, HOLDS).then((found) => found && { holds: found })
      : undefined,
};
