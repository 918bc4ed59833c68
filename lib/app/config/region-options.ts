import type { RedisConnection } from '../../storage/redis/client.js';

/** The region in which an app runs, and the home Redis for limits of scope `'world'`. */
export interface RegionOptions {
  /** The name of this region, unique among all regions: 1 to 32 letters, digits or hyphens. */
  name: string;
  /**
   * The home Redis, which counts for all regions: a URL, ioredis options, or an ioredis or node-redis connection. All regions use the same
   * one, preferably a server used for nothing else. A single server or its Sentinels, not a Cluster.
   */
  home: RedisConnection;
}
