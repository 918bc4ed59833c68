import type { RedisClient } from '../../../lib/index.js';
import { connect, createClient } from '../../../lib/storage/redis/client.js';

/** Makes a client as the library makes its own. It isn't connected yet, and its errors are ignored. The test ends it. */
export async function libraryClient(...given: Parameters<typeof createClient>): Promise<RedisClient> {
  const client = await createClient(...given);
  client.on('error', () => undefined);
  return client;
}

/** Connects such a client, as an app does when it starts. */
export function connectClient(client: RedisClient): Promise<void> {
  return connect(client);
}
