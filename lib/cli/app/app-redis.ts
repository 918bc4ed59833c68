import type { RateLimitSettings } from '../../app/config/settings.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import type { Connection } from '../../storage/redis/connection.js';
import { InputError } from '../command.js';
import { type AppRedis, appRedis } from './place-on-redis.js';
import { NO_REGIONS, type RegionRole } from './region-role.js';
import type { StartedApp } from './started-app.js';

/** Throws `InputError` if the app counts in process, where no change outlives the command. */
export function redisOf(app: StartedApp): AppRedis {
  return redisAt(app, app.provided<Connection>('RATE_LIMIT_REDIS'));
}

/** The Redis that keeps changes of rates, modes and lists: with regions, their home. */
export function changesRedisOf(app: StartedApp): AppRedis {
  return redisAt(app, app.provided<Connection>('RATE_LIMIT_HOME') ?? app.provided<Connection>('RATE_LIMIT_REDIS'));
}

/** Where counters are, without the app. */
export interface Places {
  readonly own: AppRedis;
  /** Where limits count that hold over several regions, and where changes are kept then; it may be the same. */
  readonly home: AppRedis | undefined;
  readonly role: RegionRole;
}

/** Where an app counts that was started without the app's module. */
export function placesOf(app: StartedApp): Places {
  const own = redisOf(app);
  const given = app.provided<Connection>('RATE_LIMIT_HOME');
  const role = app.provided<RegionRole>('REGION_ROLE') ?? NO_REGIONS;
  return { own, home: given === undefined ? (role.isHome ? own : undefined) : redisAt(app, given), role };
}

function redisAt(app: StartedApp, connection: Connection | undefined): AppRedis {
  if (connection === undefined) throw new InputError(cliMessages.notOnRedis());
  return appRedis(connection, app.provided<RateLimitSettings>('RATE_LIMIT_SETTINGS')!);
}
