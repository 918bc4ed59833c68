import type { StoreLayer } from '../stores/layers/store-layer.js';
import type { Store } from '../stores/store.js';
import type { HomeServer } from './feature.js';
import { homeObserver } from './regions/home-observer.js';

/**
 * Layers that let features of a program outside the apps, such as the console, read a home. No app loads them. It is a list
 * so that a feature can be removed by deleting its entry.
 */
const layers: readonly ((home: HomeServer) => (inner: Store) => StoreLayer)[] = [homeObserver];

/** The layers of a program outside the apps, from top to bottom. */
export function layersBesideApps(home: HomeServer): ((inner: Store) => StoreLayer)[] {
  return layers.map((layer) => layer(home));
}
