import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { Counter } from '../../engine/limits/counter.js';
import type { FeatureOfOptions, FeatureTerms, FirstUse } from '../../engine/limits/limit-feature.js';
import type { ReadableStore } from '../stores/feature-reading.js';
import type { OuterLayer, StoreLayer } from '../stores/layers/store-layer.js';
import type { Store } from '../stores/store.js';
import { anchors, type WithAnchors } from './anchors/anchors.js';
import { borrowing, type WithBorrowing } from './borrowing/borrowing.js';
import type { BorrowingOptions, LendingLimitOptions } from './borrowing/terms.js';
import { candidates } from './candidates/candidates.js';
import type { CandidateLimitOptions, CandidatePatch } from './candidates/options.js';
import type { BindKey, Feature, LayerSurroundings, RequestTrait, ShownUnits, TenantsNow } from './feature.js';
import { bare } from '../../engine/util/objects.js';
import { holds } from './holds/holds.js';
import { leases } from './leases/leases.js';
import { prefetch } from './prefetch/prefetch.js';
import { regions } from './regions/regions.js';
import type { PrefetchLimitOptions } from './prefetch/terms.js';
import { priorities, type ReservingLimitOptions } from './priorities/priorities.js';
import type { SharedLimitOptions, WithShares } from './shares/options.js';
import { shares } from './shares/shares.js';
import { type RecordedLimitOptions, usage, type WithUsage } from './usage/usage.js';

/** The features of limits. A feature that depends on another one comes after it. */
export const features: readonly Feature[] = [
  anchors,
  priorities,
  borrowing,
  prefetch,
  regions,
  usage,
  shares,
  leases,
  holds,
  candidates,
].map((feature: Feature) => bare(feature));

/** The options of an algorithm, including those of the features that it supports. */
export type WithFeatures<Options> = WithAnchors<WithBorrowing<WithShares<WithUsage<Options>>>>;

/** Options of features that all algorithms support. */
export interface CommonFeatureOptions
  extends ReservingLimitOptions, PrefetchLimitOptions, LendingLimitOptions, CandidateLimitOptions {}

/** The features in policies and overrides, except options of limits. */
export interface FeaturePatch extends CandidatePatch {}

/** Options of features that change with the rate. */
export interface LiveFeatureOptions extends BorrowingOptions, LendingLimitOptions {}

/** The options of features. */
export type FeatureOptions = RecordedLimitOptions & SharedLimitOptions & BorrowingOptions & CommonFeatureOptions;

/** The terms of features, for a limit with validated options. Throws `RateLimitConfigError`. */
export function featureTerms(options: object, location: string): FeatureTerms[] {
  return features.flatMap((feature) => {
    const { of } = feature;
    const terms: object | undefined = feature.terms?.(options, location);
    return of === undefined || terms === undefined ? [] : [{ of, terms }];
  });
}

/** The features that limits have through their algorithms' own options. */
export const featuresOfOptions: readonly FeatureOfOptions[] = features.flatMap(({ ofOptions }) => ofOptions ?? []);

/**
 * The trait of requests and calls that selects a version of a limit; `undefined` if it has only one version. Throws `RateLimitConfigError`.
 */
export function requestTraitOf<Key>(
  options: object,
  location: string,
  bind: BindKey<Key>,
): RequestTrait<Key> | undefined {
  for (const feature of features) {
    const trait = feature.trait?.(options, location, bind);
    if (trait !== undefined) return trait;
  }
  return undefined;
}

/** The option of a limit that keeps other limits from being within it. */
export function childlessOption(options: object, location: string): string | undefined {
  return features.find((feature) => feature.childless !== undefined && feature.terms?.(options, location) !== undefined)
    ?.childless;
}

/** A layer of a feature, and the first use that makes it join the store stack. Without `use`, it joins at start-up. */
interface FeatureLayer<Layer> {
  readonly layer: (inner: Store) => Layer;
  readonly use: FirstUse | undefined;
}

/** The layers of features in the store stack, from top to bottom. */
export async function layersOfFeatures(surroundings: LayerSurroundings): Promise<FeatureLayer<StoreLayer>[]> {
  const layers = await Promise.all(
    features.map(async ({ layer, use }) => ({ layer: await layer?.(surroundings), use })),
  );
  return layers.flatMap(({ layer, use }) => (layer === undefined ? [] : [{ layer, use }]));
}

/** The units of a limit by owner, according to its features. */
export function shownUnitsOf(limit: CompiledLimit): ShownUnits {
  return Object.assign({}, ...features.map((feature) => feature.shown?.(limit))) as ShownUnits;
}

/** Reads the tenants of a counter; `undefined` if there are none, or the store can't list them. */
export async function tenantsNow(store: ReadableStore, counter: Counter): Promise<TenantsNow | undefined> {
  for (const { tenants } of features) {
    const found = tenants?.(store, counter);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The details of a counter from its features, for explanations. */
export async function explainedByFeatures(store: ReadableStore, counter: Counter): Promise<object> {
  const parts = await Promise.all(features.flatMap(({ explained }) => explained?.(store, counter) ?? []));
  return Object.assign({}, ...parts) as object;
}

/** The layers of features above all others, from top to bottom. */
export const outerLayers: readonly FeatureLayer<OuterLayer>[] = features.flatMap(({ outerLayer, use }) =>
  outerLayer === undefined ? [] : [{ layer: outerLayer, use }],
);
