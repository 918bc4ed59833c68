import type { StoreLayer } from '../stores/layers/store-layer.js';
import type { Store } from '../stores/store.js';
import { homeObserver } from './regions/home-observer.js';
import type { Connection } from '../redis/connection.js';

/** The Redis that counts for several regions, and how it is asked. */
export interface HomeServer {
  readonly connection: Connection;
  /** Whether closing the store closes the connection. */
  readonly ownsClient: boolean;
  /** The `prefix` of the apps. */
  readonly prefix: string;
  readonly timeoutMs: number;
}

/** What features read at a home for a program beside the apps. No app loads it. */
const layers: readonly ((home: HomeServer) => (inner: Store) => StoreLayer)[] = [homeObserver];

/** The layers of a program beside the apps, from top to bottom. */
export function layersBesideApps(home: HomeServer): ((inner: Store) => StoreLayer)[] {
  return layers.map((layer) => layer(home));
}
