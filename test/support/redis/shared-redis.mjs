import { Redis } from 'ioredis';
import { ensureRedisServer, findRedisServer } from './redis-binary.mjs';
import { startRedisProcess } from './redis-process.mjs';

let server;

/** Finds or starts the one server that all specs share, and tells the workers about it in their environment. */
export async function startSharedRedis() {
  const given = process.env.REDIS_URL;
  if (given) {
    await expectAnswer(given);
    process.env.TEST_REDIS_URL = given;
    // Specs that need a Cluster or a server of their own still start one, if they can.
    const program = findRedisServer();
    if (program) process.env.TEST_REDIS_SERVER = program;
    return;
  }
  process.env.TEST_REDIS_SERVER = ensureRedisServer();
  server = await startRedisProcess();
  process.env.TEST_REDIS_URL = server.url;
}

export async function stopSharedRedis() {
  await server?.stop();
  server = undefined;
}

async function expectAnswer(url) {
  const client = new Redis(url, { lazyConnect: true, connectTimeout: 5_000, retryStrategy: () => null });
  // The rejection of `connect()` only says that the connection closed, not why.
  let reason;
  client.on('error', (error) => (reason = error.message));
  try {
    await client.connect();
    await client.ping();
  } catch (cause) {
    throw new Error(`No Redis answers at REDIS_URL: ${reason ?? cause.message}`, { cause });
  } finally {
    client.disconnect();
  }
}
