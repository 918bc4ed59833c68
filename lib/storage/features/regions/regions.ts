import type { Feature } from '../feature.js';
import { holdingsOf, LimitRegions, limitRegionsOf } from './limit-regions.js';
import { type WorldTerms, worldTerms } from './terms.js';

/** Lets a limit count over several regions: each takes units from its home in advance. */
export const regions: Feature<WorldTerms> = {
  terms: worldTerms,
  of: (limit, _terms, location) => new LimitRegions(limit, location),
  explained(store, counter) {
    if (limitRegionsOf(counter.limit) === undefined) return undefined;
    return holdingsOf(store, counter).then((regions) => ({ regions }));
  },
  async layer(surroundings) {
    const { home } = surroundings;
    if (home === undefined) return undefined;
    // Most apps have one region.
    const { regionStore } = await import('./region.store.js');
    return (inner) => regionStore(inner, surroundings, home);
  },
};
