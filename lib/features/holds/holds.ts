import type { Feature } from '../feature.js';
import { LimitHolds } from './limit-holds.js';
import { holdTerms } from './terms.js';

/** Holds units that are reserved at an estimate, until they are settled or lapse. */
export const holds: Feature = {
  ofOptions(limit, others, location) {
    const terms = holdTerms(limit, others, location);
    return terms && new LimitHolds(terms);
  },
};
