import { randomUUID } from 'node:crypto';
import { regionKeys } from '../../stores/redis/keys.js';
import type { Store } from '../../stores/store.js';
import type { HomePlace, LayerSurroundings } from '../feature.js';
import { CounterIndex } from './counter-index.js';
import { Exchanges } from './exchanges.js';
import { Home } from './home.js';
import { homeStoreOn } from './home-store.js';
import { HomeRecord } from './home-record.js';
import { RegionStore } from './region.store.js';

/** How long the home may take to answer, in milliseconds. A check doesn't wait longer for it than for the region's own server. */
const HOME_TIMEOUT_MS = 1000;

/** The layer of an app that has a home for its regions. */
export function regionStore(inner: Store, surroundings: LayerSurroundings, place: HomePlace): RegionStore {
  const { store, connection, alone, prefix, timeoutMs, findLimit } = surroundings;
  const { region, connection: toHome, ownsClient, report } = place;
  const keys = regionKeys(prefix);
  const atHome = homeStoreOn({ connection: toHome, ownsClient, prefix, timeoutMs: HOME_TIMEOUT_MS });
  const record = new HomeRecord(connection, keys.home(region), timeoutMs);
  const home = new Home(atHome.store, keys.regions, region, record, timeoutMs, report);
  const index = new CounterIndex(connection, keys.held(region), randomUUID(), timeoutMs);
  const lastCall = async () => (await record.read()).ageMs;
  const exchanges = new Exchanges(store, home, lastCall, index, findLimit);
  return new RegionStore(inner, exchanges, alone, atHome.channel, timeoutMs);
}
