import type { DynamicModule } from '@nestjs/common';
import type { RateLimitModuleOptions } from '../../app/config/module-options.js';
import { type RateLimitSettings, readSettings } from '../../app/config/settings.js';
import {
  OVERRIDE_STORE,
  RATE_LIMIT_HOME,
  RATE_LIMIT_LISTS,
  RATE_LIMIT_REDIS,
  RATE_LIMIT_SETTINGS,
  RATE_LIMIT_STORE,
} from '../../app/config/tokens.js';
import { layersBesideApps } from '../../storage/features/beside-apps.js';
import { RateLimitModule } from '../../nest/rate-limit.module.js';
import { createAppStore } from '../../nest/store.providers.js';
import type { Lists } from '../../app/overrides/lists/lists.js';
import { RedisOverrideStore } from '../../app/overrides/redis.override-store.js';
import { connect, connectionOf, createClient } from '../../storage/redis/client.js';
import type { Connection } from '../../storage/redis/connection.js';
import { rememberError } from '../../storage/redis/errors.js';
import { DecisionStream } from '../../storage/telemetry/decision-stream.js';
import { isWithoutHome, type RegionRole } from './app-redis.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import type { OverrideStore, StoredChange } from '../../app/overrides/override-store.js';

/** Replaces the changes of a region's app while its home is unknown: it has no changes, and makes none. */
class ElsewhereOverrideStore implements OverrideStore {
  /** @param isSilent true if reading returns nothing instead of failing; the caller then reports that changes are unknown */
  constructor(private readonly isSilent: boolean) {}

  subscribe(): void {}

  async watch(): Promise<void> {}

  async read(): Promise<void> {
    if (!this.isSilent) throw this.unknown();
  }

  write(): Promise<undefined> {
    return Promise.reject(this.unknown());
  }

  changes(): Promise<StoredChange[]> {
    return Promise.reject(this.unknown());
  }

  close(): void {}

  private unknown(): RateLimitStoreError {
    // The console reports what it can't read, and it has no option '--module'.
    const message = this.isSilent ? cliMessages.changesAtHome() : cliMessages.changesWithoutHome();
    return Object.assign(new RateLimitStoreError(message), { isElsewhere: true });
  }
}

/** The role of the server of `--redis` for apps in several regions. */
export const REGION_ROLE = Symbol('REGION_ROLE');

/** The settings for a program outside the apps that handles regions. */
export interface BesideRegions {
  /** The URL of the home, if passed. */
  readonly home: string | undefined;
  /** True if unknown changes are read as none instead of failing. The caller then reports that they are unknown. */
  readonly isSilent: boolean;
  /** Determines the role of the server of `--redis` once it is connected. */
  roleOf(settings: RateLimitSettings, redis: Connection, home: Connection | undefined): Promise<RegionRole>;
}

/**
 * Creates an app that belongs to no region but reads the data at their home: changes of rates, modes and lists, and limits of scope
 * 'world'. With the option `regions` it would be an instance of a region. Ends the module's connections if the app can't be created.
 */
export async function createBesideRegions<App>(
  options: RateLimitModuleOptions,
  beside: BesideRegions,
  create: (module: DynamicModule) => Promise<App>,
): Promise<App> {
  const connections: Connection[] = [];
  let isAbandoned = false;
  const connected = async (connection: Connection) => {
    connections.push(connection);
    await connect(connection).catch((error: Error) => rememberError(connection, error));
    if (isAbandoned) connection.disconnect();
  };
  try {
    return await create(moduleOf(options, beside, connected));
  } catch (error) {
    isAbandoned = true;
    for (const connection of connections) connection.disconnect();
    throw error;
  }
}

function moduleOf(
  options: RateLimitModuleOptions,
  beside: BesideRegions,
  connected: (connection: Connection) => Promise<void>,
): DynamicModule {
  const { home, isSilent } = beside;
  const module = RateLimitModule.forRoot(options);
  return {
    ...module,
    providers: [
      ...(module.providers ?? []),
      {
        provide: RATE_LIMIT_SETTINGS,
        // Limits of scope 'world' require regions; the stores that these need are created below.
        useFactory: (): RateLimitSettings => ({
          ...readSettings(options),
          regions: { name: 'beside', home: home ?? options.redis! },
        }),
      },
      {
        provide: RATE_LIMIT_HOME,
        useFactory: async ({ timeoutMs }: RateLimitSettings) =>
          home === undefined ? undefined : connectionOf(await createClient(home, timeoutMs)),
        inject: [RATE_LIMIT_SETTINGS],
      },
      {
        provide: REGION_ROLE,
        useFactory: async (settings: RateLimitSettings, redis: Connection, toHome?: Connection) => {
          await Promise.all([connected(redis), ...(toHome === undefined ? [] : [connected(toHome)])]);
          return beside.roleOf(settings, redis, toHome);
        },
        inject: [RATE_LIMIT_SETTINGS, RATE_LIMIT_REDIS, RATE_LIMIT_HOME],
      },
      {
        provide: OVERRIDE_STORE,
        useFactory: (settings: RateLimitSettings, role: RegionRole, redis: Connection, toHome?: Connection) =>
          isWithoutHome(role, toHome)
            ? new ElsewhereOverrideStore(isSilent)
            : new RedisOverrideStore(toHome ?? redis, settings),
        inject: [RATE_LIMIT_SETTINGS, REGION_ROLE, RATE_LIMIT_REDIS, RATE_LIMIT_HOME],
      },
      {
        provide: RATE_LIMIT_STORE,
        useFactory: async (
          settings: RateLimitSettings,
          decisions: DecisionStream,
          lists: Lists,
          role: RegionRole,
          redis: Connection,
          toHome?: Connection,
        ) => {
          const stack = await createAppStore(settings, decisions, lists, { redis, ownsClient: true });
          const connection = toHome ?? (role.isHome ? redis : undefined);
          if (connection !== undefined) {
            const { prefix, timeoutMs } = settings;
            const observed = { connection, ownsClient: toHome !== undefined, prefix, timeoutMs };
            for (const layer of layersBesideApps(observed)) stack.insert(layer);
          }
          return stack;
        },
        inject: [RATE_LIMIT_SETTINGS, DecisionStream, RATE_LIMIT_LISTS, REGION_ROLE, RATE_LIMIT_REDIS, RATE_LIMIT_HOME],
      },
    ],
  };
}
