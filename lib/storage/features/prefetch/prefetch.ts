import type { Feature } from '../feature.js';
import { LimitPrefetch, type PrefetchTerms, prefetchTerms, prefetchUse } from './terms.js';
import { PrefetchStore } from './prefetch.store.js';

/** Lets an instance prefetch units and decide checks in process. */
export const prefetch: Feature<PrefetchTerms> = {
  terms: prefetchTerms,
  of: (limit, terms, location) => new LimitPrefetch(limit, terms, location),
  use: prefetchUse,
  layer:
    ({ channel }) =>
    (inner) =>
      new PrefetchStore(inner, channel),
  // Its counter is charged for requests that are yet to come.
  childless: 'prefetch',
};
