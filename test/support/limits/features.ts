import type { LimitSettings } from '../../../lib/testing/store/index.js';

/** A feature with what one limit says of it. */
export type FeatureTerms = NonNullable<LimitSettings['features']>[number];
type Of = FeatureTerms['of'];
/** A limit as its features see it. */
export type FeaturedLimit = Of extends (limit: infer Limit, ...rest: never[]) => unknown ? Limit : never;
/** A feature applied to a limit. */
export type LimitFeature = Of extends (...args: never[]) => infer Feature ? Feature : never;
