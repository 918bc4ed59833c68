import type { RateLimitSettings } from '../../app/config/settings.js';
import { ConsoleRedis } from '../../console/telemetry/console-redis.js';
import type { Connection } from '../../storage/redis/connection.js';

/** The Redis of an app, for commands of the program's own. */
export interface AppRedis {
  readonly redis: ConsoleRedis;
  readonly prefix: string;
}

/** The Redis of a connection. */
export function appRedis(
  connection: Connection,
  { prefix, timeoutMs }: Pick<RateLimitSettings, 'prefix' | 'timeoutMs'>,
): AppRedis {
  return { redis: new ConsoleRedis(connection, prefix, timeoutMs), prefix };
}
