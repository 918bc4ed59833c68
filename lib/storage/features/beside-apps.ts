import type { StoreLayer } from '../stores/layers/store-layer.js';
import type { Store } from '../stores/store.js';
import type { HomeServer } from './feature.js';
import { homeObserver } from './regions/home-observer.js';

/**
 * The layers, from top to bottom, that let features of a program outside the apps, such as the console, read a home. No app loads them.
 */
export function layersBesideApps(home: HomeServer): ((inner: Store) => StoreLayer)[] {
  return [homeObserver(home)];
}
