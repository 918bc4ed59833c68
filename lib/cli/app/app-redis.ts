import type { RateLimitSettings } from '../../config/settings.js';
import { ConsoleRedis } from '../../console/telemetry/console-redis.js';
import { cliMessages } from '../../errors/messages/cli.js';
import type { Connection } from '../../redis/connection.js';
import { InputError } from '../command.js';
import type { StartedApp } from './started-app.js';

/** The Redis of an app, for commands of the program's own. */
export interface AppRedis {
  readonly redis: ConsoleRedis;
  readonly prefix: string;
}

/** Throws `InputError` if the app counts in process, where no change outlives the command. */
export function redisOf(app: StartedApp): AppRedis {
  const connection = app.provided<Connection>('RATE_LIMIT_REDIS');
  if (connection === undefined) throw new InputError(cliMessages.notOnRedis());
  const { prefix, timeoutMs } = app.provided<RateLimitSettings>('RATE_LIMIT_SETTINGS')!;
  return { redis: new ConsoleRedis(connection, prefix, timeoutMs), prefix };
}
