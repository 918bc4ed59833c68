import { candidateUse } from '../../../engine/limits/compiled-limit.js';
import type { Feature } from '../feature.js';
import { CandidateStore } from './candidate.store.js';

/** Counts candidates: second versions of limits. Their options are in `second-version.ts`. */
export const candidates: Feature = {
  use: candidateUse,
  outerLayer: (inner) => new CandidateStore(inner),
};
