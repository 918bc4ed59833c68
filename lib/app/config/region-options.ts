import type { RedisConnection } from '../../storage/redis/client.js';

/** The region in which an app runs, and where limits of scope `'world'` count for all regions. */
export interface RegionOptions {
  /** The name of this region, which no other one has: 1 to 32 letters, digits or hyphens. */
  name: string;
  /**
   * The Redis that counts for all regions: a URL, ioredis options, or a connection of ioredis or node-redis. It is the same for all
   * regions, and best a server of its own. One server or its Sentinels, not a Cluster.
   */
  home: RedisConnection;
}
