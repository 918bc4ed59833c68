import type { StoreLayer } from '../stores/layers/store-layer.js';
import type { Store } from '../stores/store.js';
import type { HomeServer } from './home-server.js';
import { homeObserver } from './regions/home-observer.js';

/** What features read at a home for a program beside the apps. No app loads it. */
const layers: readonly ((home: HomeServer) => (inner: Store) => StoreLayer)[] = [homeObserver];

/** The layers of a program beside the apps, from top to bottom. */
export function layersBesideApps(home: HomeServer): ((inner: Store) => StoreLayer)[] {
  return layers.map((layer) => layer(home));
}
