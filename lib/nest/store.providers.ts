import type { Provider } from '@nestjs/common';
import type { RateLimitModuleOptions } from '../app/config/module-options.js';
import type { RateLimitSettings } from '../app/config/settings.js';
import {
  OVERRIDE_STORE,
  RATE_LIMIT_HOME,
  RATE_LIMIT_LISTS,
  RATE_LIMIT_REDIS,
  RATE_LIMIT_SETTINGS,
  RATE_LIMIT_STORE,
} from '../app/config/tokens.js';
import { configError } from '../engine/errors/errors.js';
import { moduleLogger } from '../engine/errors/logger.js';
import { messages } from '../engine/errors/messages/general.js';
import { redisMessages, regionMessages, replicaMessages } from '../engine/errors/messages/redis.js';
import type { HomePlace } from '../storage/features/feature.js';
import { readConfiguredLists } from '../app/overrides/lists/list-options.js';
import { Lists } from '../app/overrides/lists/lists.js';
import { MemoryOverrideStore } from '../app/overrides/memory.override-store.js';
import type { OverrideStore } from '../app/overrides/override-store.js';
import { connectionOf, createClient, isClient, isUnopened, ownCopy, resends } from '../storage/redis/client.js';
import type { Connection } from '../storage/redis/connection.js';
import { missesFailovers } from '../storage/redis/sentinels.js';
import { addressesOf, connectionReason, serverOf } from '../storage/redis/errors.js';
import type { StoreReport } from '../storage/stores/layers/circuits.js';
import type { SlotReport } from '../storage/stores/layers/circuit.js';
import { DecisionHooks } from '../app/hooks/decision-hooks.js';
import { DecisionStream } from '../storage/telemetry/decision-stream.js';
import { DeclaredLimits } from '../app/rules/declared-limits.js';
import { type CountingPlace, createStoreStack, type StoreStack } from './store-stack.js';

/** Builds the store of an app that counts in the given place, regardless of its `redis` and `store` options. */
export function createAppStore(
  settings: RateLimitSettings,
  decisions: DecisionStream,
  lists: Lists,
  place: CountingPlace,
): Promise<StoreStack> {
  const report = (news: StoreReport) => reportNews(news, place);
  return createStoreStack({ ...settings, ...place, report, decisions, lists });
}

/** Logs once when the store fails, and once when it has recovered. */
function reportNews(news: StoreReport, { redis }: CountingPlace): void {
  if (news.state === 'unconfirmed') {
    moduleLogger.error(replicaMessages.lagging(news.error.message));
    return;
  }
  if (news.state === 'late') {
    moduleLogger.error(messages.checksTooLong(news.error.message));
    return;
  }
  const { node } = news;
  if (news.state === 'replaced') moduleLogger.log(messages.nodeReplaced(news.node));
  else if (news.slot !== undefined) reportSlot(news);
  else if (news.state === 'recovered') {
    moduleLogger.log(node === undefined ? messages.storeRecovered() : messages.nodeRecovered(node));
  } else {
    const reason = connectionReason(news.error);
    const server = isClient(redis) ? addressesOf(connectionOf(redis)) : undefined;
    moduleLogger.error(
      node === undefined
        ? messages.storeFailing(redisMessages.withAdvice(reason, server))
        : messages.nodeFailing(node, reason),
    );
  }
}

function reportSlot(news: SlotReport): void {
  const { node, slot } = news;
  if (news.state === 'recovered') moduleLogger.log(messages.slotRecovered(slot));
  else moduleLogger.error(messages.slotFailing(slot, node, news.error.message));
}

/**
 * Connects, or uses the app's own connection, or a copy of it if that would resend commands. Throws `RateLimitConfigError` if it cannot be
 * used.
 */
export async function connectionTo(
  redis: RateLimitModuleOptions['redis'],
  timeoutMs: number,
  location = 'RateLimitModule',
): Promise<Connection | undefined> {
  if (redis === undefined) return undefined;
  const isGiven = isClient(redis);
  const made = connectionOf(isGiven ? redis : await createClient(redis, timeoutMs));
  if (isGiven && isUnopened(made)) throw configError('SLUICE_INVALID_REDIS', redisMessages.notOpen(location));
  const connection = (isGiven ? ownCopy(made, timeoutMs) : undefined) ?? made;
  if (isGiven && resends(connection)) moduleLogger.warn(messages.resends());
  if (missesFailovers(connection)) moduleLogger.warn(messages.missesFailovers());
  return connection;
}

/** Returns true if the library closes a connection. The app's own connection stays open. */
export function isOwn(connection: Connection | undefined, given: RateLimitModuleOptions['redis']): boolean {
  return !isClient(given) || connection !== connectionOf(given);
}

/** The home Redis, which counts for several regions. It logs once per reason when it fails, and once when it has recovered. */
function homeOf({ regions }: RateLimitSettings, connection: Connection | undefined): HomePlace | undefined {
  if (regions === undefined || connection === undefined) return undefined;
  const address = addressesOf(connection);
  return {
    region: regions.name,
    connection,
    ownsClient: isOwn(connection, regions.home),
    report(news) {
      if (news.state === 'recovered') moduleLogger.log(regionMessages.homeRecovered(address));
      else moduleLogger.error(regionMessages.homeFailing(address, connectionReason(news.error)));
    },
  };
}

/** The providers of the connection, the store and the overrides. */
export const storeProviders: Provider[] = [
  {
    provide: RATE_LIMIT_REDIS,
    useFactory: ({ options: { redis }, timeoutMs }: RateLimitSettings) => connectionTo(redis, timeoutMs),
    inject: [RATE_LIMIT_SETTINGS],
  },
  {
    provide: RATE_LIMIT_HOME,
    useFactory: async ({ regions, timeoutMs }: RateLimitSettings, redis?: Connection) => {
      const connection = await connectionTo(regions?.home, timeoutMs);
      if (connection?.isCluster === true) throw configError('SLUICE_INVALID_REDIS', regionMessages.homeIsCluster());
      const server = connection && serverOf(connection);
      if (server !== undefined && redis !== undefined && server === serverOf(redis)) {
        moduleLogger.warn(regionMessages.sharedHome(server));
      }
      return connection;
    },
    inject: [RATE_LIMIT_SETTINGS, RATE_LIMIT_REDIS],
  },
  {
    provide: RATE_LIMIT_STORE,
    useFactory: (
      settings: RateLimitSettings,
      decisions: DecisionStream,
      lists: Lists,
      declared: DeclaredLimits,
      redis?: Connection,
      home?: Connection,
    ) => {
      const { store, redis: given } = settings.options;
      const own = { store, redis, ownsClient: isOwn(redis, given) };
      const place = { ...own, home: homeOf(settings, home), findLimit: declared.find };
      return createAppStore(settings, decisions, lists, place);
    },
    inject: [RATE_LIMIT_SETTINGS, DecisionStream, RATE_LIMIT_LISTS, DeclaredLimits, RATE_LIMIT_REDIS, RATE_LIMIT_HOME],
  },
  {
    provide: RATE_LIMIT_LISTS,
    useFactory: ({ options }: RateLimitSettings) => new Lists(readConfiguredLists(options.lists)),
    inject: [RATE_LIMIT_SETTINGS],
  },
  {
    provide: OVERRIDE_STORE,
    // Changes in one region apply to all regions.
    useFactory: async (settings: RateLimitSettings, redis?: Connection, home = redis): Promise<OverrideStore> => {
      if (home === undefined) return new MemoryOverrideStore();
      const { RedisOverrideStore } = await import('../app/overrides/redis.override-store.js');
      return new RedisOverrideStore(home, settings);
    },
    inject: [RATE_LIMIT_SETTINGS, RATE_LIMIT_REDIS, RATE_LIMIT_HOME],
  },
  DecisionStream,
  DecisionHooks,
];
