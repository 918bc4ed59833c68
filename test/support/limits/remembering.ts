import { remembering } from './layers.js';
import { LocalChannel } from './local-channel.js';
import { SharedStore } from '../redis/shared-store.js';

/** A store that remembers refusals, over the one that instances share; both are connected. */
export async function startRemembering() {
  const shared = new SharedStore();
  shared.source = () => 'redis';
  const channel = new LocalChannel();
  const store = remembering(shared, channel);
  await store.open();
  channel.connect();
  return { shared, channel, store };
}
