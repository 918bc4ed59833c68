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
  await refuseServerWide(server.url);
  process.env.TEST_REDIS_URL = server.url;
}

/** Commands that affect the whole server, and so other specs that use it at the same time. A spec that needs them starts a server. */
const SERVER_WIDE = [
  '-flushall',
  '-flushdb',
  '-swapdb',
  '-debug',
  '-shutdown',
  '-script|flush',
  '-client|kill',
  '-config|set',
];

async function refuseServerWide(url) {
  const client = new Redis(url);
  const [, major] = /redis_version:(\d+)/.exec(await client.info('server'));
  // Redis 6 knows no rules for parts of a command.
  if (Number(major) >= 7) await client.call('ACL', 'SETUSER', 'default', ...SERVER_WIDE);
  client.disconnect();
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
