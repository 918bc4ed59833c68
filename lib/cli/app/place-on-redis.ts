import type { ConsoleRedis } from '../../console/telemetry/console-redis.js';

/** The Redis of an app, for commands of the program's own. */
export interface AppRedis {
  readonly redis: ConsoleRedis;
  readonly prefix: string;
}
