import { createClient, createCluster, createSentinel } from 'redis';
import {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from 'redis-5';

/** Both major versions that are supported. */
export const nodeRedis = {
  'node-redis 6': { createClient, createCluster, createSentinel },
  'node-redis 5': {
    createClient: createClient5 as unknown as typeof createClient,
    createCluster: createCluster5 as unknown as typeof createCluster,
    createSentinel: createSentinel5 as unknown as typeof createSentinel,
  },
} as const;

export type NodeRedis = (typeof nodeRedis)[keyof typeof nodeRedis];

/** An open client of the server that all tests share, or of another one. Its errors are not shown. */
export function openClient(
  { createClient: make }: Pick<NodeRedis, 'createClient'> = nodeRedis['node-redis 6'],
  url = process.env['TEST_REDIS_URL']!,
) {
  return make({ url })
    .on('error', () => undefined)
    .connect();
}

export type Client = Awaited<ReturnType<typeof openClient>>;
