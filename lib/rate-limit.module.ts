import {
  type DynamicModule,
  type FactoryProvider,
  Global,
  Inject,
  Logger,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { APP_INTERCEPTOR, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { getLimiterToken, recordedLimiters } from './decorators/inject-limiter.decorator.js';
import { RateLimitConfigError } from './errors/errors.js';
import { messages } from './errors/messages.js';
import { RateLimitHealthIndicator } from './health/rate-limit.health-indicator.js';
import { Refusals } from './http/refusals.js';
import { ResponseHeaders } from './http/response-headers.js';
import { RATE_LIMIT_RANDOM } from './http/retry-jitter.js';
import { KeyResolverFactory } from './key-resolvers/key-resolver.factory.js';
import type { LimitDefinition } from './limit-definition.js';
import { LimiterService } from './limiter.service.js';
import { ApiDocumentation } from './openapi/api-documentation.js';
import { LimitRegistry } from './plan/limit-registry.js';
import { anyOutlasts, record } from './plan/outlasting.js';
import { PlanRegistry } from './plan/plan-registry.js';
import { RuleCompiler } from './plan/rule-compiler.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { RateLimitInterceptor } from './rate-limit.interceptor.js';
import {
  type ASYNC_OPTIONS_TYPE,
  ConfigurableModuleClass,
  MODULE_OPTIONS_TOKEN,
  type OPTIONS_TYPE,
} from './rate-limit.module-definition.js';
import {
  RATE_LIMIT_REDIS,
  RATE_LIMIT_SETTINGS,
  RATE_LIMIT_STORE,
  type RateLimitSettings,
  readSettings,
} from './rate-limit.settings.js';
import { MemoryRateBook } from './rates/memory.rate-book.js';
import { RATE_BOOK, Rates } from './rates/rates.js';
import { RedisRateBook } from './rates/redis.rate-book.js';
import { createClient, isClient, type RedisClient, resends } from './redis/client.js';
import { RequestLimiter } from './request/request-limiter.js';
import { createStore } from './stores/create-store.js';
import type { FallbackStore, StoreReport } from './stores/fallback.store.js';
import type { Store } from './stores/store.js';
import { DecisionStream } from './telemetry/decision-stream.js';
import { ObservedStore } from './telemetry/observed.store.js';
import { ClientAddresses } from './transports/client-addresses.js';
import { followGuards } from './transports/follow-guards.js';
import { Transports } from './transports/transports.js';
import { WaitingRoom } from './waiting/waiting-room.js';

const logger = new Logger('RateLimitModule');

/** Says once that the store fails, and once that it is back. */
export function report(news: StoreReport): void {
  const { node } = news;
  if (news.state === 'replaced') logger.log(messages.nodeReplaced(news.node));
  else if (news.state === 'recovered') {
    logger.log(node === undefined ? messages.storeRecovered() : messages.nodeRecovered(node));
  } else {
    const { message } = news.error;
    logger.error(node === undefined ? messages.storeFailing(message) : messages.nodeFailing(node, message));
  }
}

/** The limits of the app: of all its routes, and of its code through `LimiterService`. */
@Global()
@Module({
  providers: [
    { provide: RATE_LIMIT_SETTINGS, useFactory: readSettings, inject: [MODULE_OPTIONS_TOKEN] },
    {
      provide: RATE_LIMIT_REDIS,
      useFactory: ({ options: { redis }, timeoutMs }: RateLimitSettings) => {
        if (redis !== undefined && !isClient(redis)) return createClient(redis, timeoutMs);
        if (redis !== undefined && resends(redis)) logger.warn(messages.resends());
        return redis;
      },
      inject: [RATE_LIMIT_SETTINGS],
    },
    {
      provide: RATE_LIMIT_STORE,
      useFactory: async (settings: RateLimitSettings, decisions: DecisionStream, redis?: RedisClient) => {
        const { options, prefix, timeoutMs, maxKeys, maxBytes, refusalCache, localShare, telemetry } = settings;
        let fallback: FallbackStore | undefined;
        const ownsClient = redis !== options.redis;
        const store = await createStore({
          store: options.store,
          redis,
          ownsClient,
          prefix,
          timeoutMs,
          maxKeys,
          maxBytes,
          refusalCache,
          localShare,
          report,
          watch: (watched) => (fallback = watched),
        });
        return new ObservedStore(store, decisions, { telemetry, fallback });
      },
      inject: [RATE_LIMIT_SETTINGS, DecisionStream, RATE_LIMIT_REDIS],
    },
    {
      provide: RATE_BOOK,
      useFactory: (settings: RateLimitSettings, redis?: RedisClient) =>
        redis === undefined ? new MemoryRateBook() : new RedisRateBook(redis, settings),
      inject: [RATE_LIMIT_SETTINGS, RATE_LIMIT_REDIS],
    },
    { provide: RATE_LIMIT_RANDOM, useValue: Math.random },
    DecisionStream,
    RateLimitHealthIndicator,
    MetadataScanner,
    KeyResolverFactory,
    RuleCompiler,
    LimitRegistry,
    PlanRegistry,
    ResponseHeaders,
    Refusals,
    Transports,
    ClientAddresses,
    RequestLimiter,
    RateLimitGuard,
    RateLimitInterceptor,
    WaitingRoom,
    Rates,
    LimiterService,
    ApiDocumentation,
  ],
  exports: [LimiterService, RateLimitGuard, RateLimitHealthIndicator, RequestLimiter, LimitRegistry],
})
export class RateLimitModule extends ConfigurableModuleClass implements OnModuleInit, OnApplicationShutdown {
  /** @internal */
  constructor(
    private readonly plans: PlanRegistry,
    private readonly keys: KeyResolverFactory,
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    private readonly rates: Rates,
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly transports: Transports,
    documentation: ApiDocumentation,
    modules: ModulesContainer,
  ) {
    super();
    documentation.write();
    // Nest reads what is bound to gateways and routes before it calls any hook.
    followGuards(modules);
  }

  /** Sets the module up with options. Imported once, it holds for the whole app. */
  static override forRoot(options: typeof OPTIONS_TYPE = {}): DynamicModule {
    checkExtras(options, 'RateLimitModule');
    return completed(super.forRoot(options), () => anyOutlasts(options));
  }

  /** Sets the module up with options that are known only at start-up: `useFactory`, `useClass` or `useExisting`. */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    checkExtras(options, 'RateLimitModule.forRootAsync');
    return completed(super.forRootAsync(options), () => true);
  }

  /** Defines further limits by name, for the module that imports it and for all others. */
  static forFeature(definitions: Readonly<Record<string, LimitDefinition>>): DynamicModule {
    if (typeof definitions !== 'object' || definitions === null || Array.isArray(definitions)) {
      throw new RateLimitConfigError(messages.notOptions('forFeature', definitions));
    }
    record(Object.values(definitions));
    // The names are in the token, so that Nest tells modules apart that differ in nothing else.
    const define: FactoryProvider = {
      provide: `nestjs-sluice:feature:${JSON.stringify(Object.keys(definitions))}`,
      useFactory: (registry: LimitRegistry) => registry.define(definitions, 'forFeature'),
      inject: [LimitRegistry],
    };
    return { module: RateLimitFeatureModule, providers: [define] };
  }

  /** Is called by Nest: reads all limits, and brings the store up. Throws `RateLimitConfigError`. */
  async onModuleInit(): Promise<void> {
    if (this.settings.shadow) logger.warn(messages.shadowMode());
    this.plans.prepare();
    await Promise.all([this.keys.ready(), this.transports.open()]);
    await Promise.all([this.store.open?.(), this.rates.open()]);
  }

  /** Is called by Nest: closes what the module opened. */
  async onApplicationShutdown(): Promise<void> {
    this.rates.close();
    await this.store.close();
  }
}

/** Refuses what is no options at all, before Nest reads them. */
function checkExtras(options: unknown, place: string): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RateLimitConfigError(messages.notOptions(place, options));
  }
  const { guard } = options as { guard?: unknown };
  if (guard !== undefined && typeof guard !== 'boolean') {
    throw new RateLimitConfigError(messages.wrongOption(place, 'guard', guard, 'true or false'));
  }
}

/** Holds the definitions of one `forFeature`. */
@Module({})
class RateLimitFeatureModule {}

/**
 * Provides a `Limiter` for every name that is injected anywhere, and the interceptor if any limit needs it. Both are known only
 * when all files have been loaded, which is when Nest reads the module, not when `forRoot` is called.
 */
function completed(definition: DynamicModule, intercepts: () => boolean): DynamicModule {
  const interceptor: Provider = { provide: APP_INTERCEPTOR, useExisting: RateLimitInterceptor };
  const providers = () => [...limiters(), ...(intercepts() ? [interceptor] : [])];
  return Object.defineProperties(definition, {
    providers: { enumerable: true, get: withAdded(definition.providers, providers) },
    exports: { enumerable: true, get: withAdded(definition.exports, () => limiters().map(({ provide }) => provide)) },
  });
}

function limiters(): FactoryProvider[] {
  return recordedLimiters().map((name) => ({
    provide: getLimiterToken(name),
    useFactory: (service: LimiterService) => service.lazily(name),
    inject: [LimiterService],
  }));
}

function withAdded<T>(before: readonly T[] = [], added: () => readonly T[]): () => T[] {
  return () => [...before, ...added()];
}
