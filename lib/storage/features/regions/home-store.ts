import { ignoreConnectionErrors } from '../../redis/client.js';
import { InstanceChannel } from '../../redis/instance-channel.js';
import { regionKeys } from '../../stores/redis/keys.js';
import { RedisStore } from '../../stores/redis/redis.store.js';
import type { HomeServer } from '../home-server.js';

/** The counters of a home, and the channel on which it is said that they ended. */
export function homeStoreOn({ connection, ownsClient, prefix, timeoutMs }: HomeServer) {
  const { atHome, ended } = regionKeys(prefix);
  const release = ignoreConnectionErrors(connection);
  const store = new RedisStore(connection, {
    prefix: atHome,
    timeoutMs,
    ownsClient,
    ...(ownsClient ? {} : { release }),
  });
  return { store, channel: new InstanceChannel(connection, ended, timeoutMs) };
}
