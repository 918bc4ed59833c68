import {
  type ClassProvider,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Global,
  Inject,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
  Optional,
  type Provider,
  type Type,
} from '@nestjs/common';
import { ApplicationConfig, MetadataScanner, ModulesContainer } from '@nestjs/core';
import type { LimitDefinition } from '../app/config/limit-definition.js';
import { MODULE_OPTIONS } from '../app/config/module-option-checks.js';
import type {
  RateLimitModuleExtras,
  RateLimitModuleOptions,
  ReturnedModuleOptions,
} from '../app/config/module-options.js';
import { type RateLimitSettings, readSettings } from '../app/config/settings.js';
import {
  getLimiterToken,
  onLimiterRecorded,
  RATE_LIMIT_GUARD_OPTION,
  RATE_LIMIT_RANDOM,
  RATE_LIMIT_POLICIES,
  RATE_LIMIT_REDIS,
  RATE_LIMIT_SETTINGS,
  RATE_LIMIT_STORE,
} from '../app/config/tokens.js';
import { DecisionHooks } from '../app/hooks/decision-hooks.js';
import { KeyResolverFactory } from '../app/key-resolvers/key-resolver.factory.js';
import { Overrides } from '../app/overrides/overrides.js';
import type { Policies } from '../app/policy/policies.js';
import { LimitResolvers } from '../app/rules/by-request/limit-resolvers.js';
import { HandlerClasses } from '../app/rules/handler-classes.js';
import { LimitRegistry } from '../app/rules/limit-registry.js';
import { RefusalResolvers } from '../app/rules/refusal-resolvers.js';
import { RouteRulesRegistry } from '../app/rules/route-rules-registry.js';
import { StartUpCheck } from '../app/rules/start-up-check.js';
import { WaitQueues } from '../app/waiting/wait-queues.js';
import { configError, RateLimitConfigError } from '../engine/errors/errors.js';
import { moduleLogger } from '../engine/errors/logger.js';
import { messages } from '../engine/errors/messages/general.js';
import { optionMessages } from '../engine/errors/messages/options.js';
import { isBelowSecond, wrongOption } from '../engine/options/check-options.js';
import { isObjectOfOptions } from '../engine/options/values.js';
import type { Store } from '../storage/stores/store.js';
import { DecisionStream } from '../storage/telemetry/decision-stream.js';
import { bindGatewayFilters, GuardOfApp, messageGuard } from './bind-for-app.js';
import { addCopy, setUpCopy } from './copies.js';
import { Explanations } from './explain/explanations.js';
import { bindContinuations, followCalls } from './follow-calls.js';
import { RateLimitHealthIndicator } from './health/rate-limit.health-indicator.js';
import { LimiterService } from './limiter.service.js';
import { LimitedCalls } from './methods/limited-calls.js';
import { moduleIsSetUp } from './missing-module.js';
import { ApiDocumentation } from './openapi/api-documentation.js';
import { policyProviders, requestProviders, ruleProviders } from './providers.js';
import { limiterProvider, RateLimitFeatureModule } from './rate-limit-feature.module.js';
import { RateLimitGuard, RateLimitInterceptor, ThrownRefusalsFilter } from './rate-limit.enhancers.js';
import { DeniedAddresses } from './request/denied-addresses.js';
import { RejectedRequests } from './request/rejected-requests.js';
import { RequestLimiter } from './request/request-limiter.js';
import { ThrownRefusals } from './request/thrown-refusals.js';
import { Transports } from './request/transports.js';
import { storeProviders } from './store.providers.js';

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<ReturnedModuleOptions>({ moduleName: 'RateLimit' })
    .setClassMethodName('forRoot')
    .setExtras<RateLimitModuleExtras>({ guard: true }, (definition, { guard }) => ({
      ...definition,
      providers: [...(definition.providers ?? []), { provide: RATE_LIMIT_GUARD_OPTION, useValue: guard ?? true }],
    }))
    .build();

/** The maximum time that a closing app waits for work that holds leases. Supervisors kill it after 10 or 30 s. */
const LONGEST_WORK_MS = 5000;

const providers: Provider[] = [
  {
    provide: RATE_LIMIT_SETTINGS,
    useFactory: (options?: RateLimitModuleOptions) => {
      if (options === undefined) throw configError('SLUICE_MISSING_OPTION', messages.noOptions());
      return readSettings(options);
    },
    inject: [{ token: MODULE_OPTIONS_TOKEN, optional: true }],
  },
  ...policyProviders,
  ...storeProviders,
  { provide: RATE_LIMIT_RANDOM, useValue: Math.random },
  GuardOfApp,
  RateLimitHealthIndicator,
  MetadataScanner,
  ...ruleProviders,
  ...requestProviders,
  WaitQueues,
  Overrides,
  LimiterService,
  LimitedCalls,
  ApiDocumentation,
];
const exported: (Type | string | symbol)[] = [
  LimiterService,
  RateLimitGuard,
  RateLimitHealthIndicator,
  RequestLimiter,
  LimitRegistry,
  // Used by enhancers that are bound to classes of the app.
  LimitedCalls,
  GuardOfApp,
  ThrownRefusals,
  RejectedRequests,
  // Used by the console, which is a separate module.
  RATE_LIMIT_SETTINGS,
  RATE_LIMIT_STORE,
  RATE_LIMIT_REDIS,
  DecisionStream,
  DeniedAddresses,
  Overrides,
  Explanations,
  RouteRulesRegistry,
  HandlerClasses,
  // Used by services of other entry points.
  WaitQueues,
];
addCopy(exported);
// Nest reads the metadata of a module's class once it has found all modules of an app, so all of its files have been loaded.
onLimiterRecorded((name) => {
  providers.push(limiterProvider(name));
  exported.push(getLimiterToken(name));
});

/**
 * @internal Adds a provider of another entry point, for apps that import it, or replaces the one with its token. Call it while the
 * provider's file is loaded.
 */
export function addProvider(provider: Type | ClassProvider): void {
  const token = typeof provider === 'function' ? provider : (provider.provide as Type);
  providers.push(provider);
  if (!exported.includes(token)) exported.push(token);
}

/** The limits of the app: of all its routes, and of its code through `LimiterService`. */
@Global()
@Module({ providers, exports: exported })
export class RateLimitModule extends ConfigurableModuleClass implements OnModuleInit, OnApplicationShutdown {
  /** @internal */
  constructor(
    private readonly startUp: StartUpCheck,
    private readonly keys: KeyResolverFactory,
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    private readonly rates: Overrides,
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly transports: Transports,
    private readonly documentation: ApiDocumentation,
    plans: RouteRulesRegistry,
    limits: LimitRegistry,
    limiters: LimiterService,
    modules: ModulesContainer,
    config: ApplicationConfig,
    guard: RateLimitGuard,
    @Optional() @Inject(RATE_LIMIT_GUARD_OPTION) bindsGuard: boolean | 'custom' | undefined,
    interceptor: RateLimitInterceptor,
    refusals: ThrownRefusalsFilter,
    thrown: ThrownRefusals,
    @Inject(RATE_LIMIT_POLICIES) private readonly policies: Policies | undefined,
    private readonly queues: WaitQueues,
    private readonly resolvers: LimitResolvers,
    private readonly hooks: DecisionHooks,
    private readonly refusalResolvers: RefusalResolvers,
    guardOfApp: GuardOfApp,
  ) {
    super();
    // All modules have been found by now, but no routes have been created.
    refuseSecond(modules);
    for (const definitions of RateLimitFeatureModule.all(modules)) limits.define(definitions, 'forFeature');
    policies?.begin();
    provideLimiters(modules, limits.names, limiters);
    documentation.begin();
    const needsInterceptor = plans.needInterceptor();
    // Nest reads the enhancers of gateways and routes before it calls any hook.
    const ofApp = () => config.getGlobalGuards().find((each) => each.constructor === RateLimitGuard);
    if (bindsGuard !== 'custom') guardOfApp.find = bindsGuard === true ? () => guard : ofApp;
    bindContinuations(modules, needsInterceptor, bindsGuard === 'custom' ? undefined : messageGuard(guardOfApp));
    // Added before the app's own filters: Nest uses the last filter that matches, so the app's have precedence.
    config.getGlobalFilters().unshift(refusals);
    bindGatewayFilters(modules, thrown);
    // Added before the app's own guards, in any import order of its modules, so that requests that these reject have been counted.
    if (bindsGuard === true) config.getGlobalGuards().unshift(guard);
    // Added before the interceptors of all other modules, so that none of them responds to a request that has not been counted.
    if (needsInterceptor) {
      config.addGlobalInterceptor(interceptor);
      followCalls();
    }
  }

  /** Sets up the module with options. Imported once, it applies to the whole app. */
  static override forRoot(options: RateLimitModuleOptions & RateLimitModuleExtras = {}): DynamicModule {
    moduleIsSetUp();
    checkExtras(options, 'RateLimitModule', MODULE_OPTIONS);
    return withSubstitutes(super.forRoot(options));
  }

  /** Sets up the module with options that are only known at start-up: `useFactory`, `useClass` or `useExisting`. */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    moduleIsSetUp();
    const location = 'RateLimitModule.forRootAsync';
    checkExtras(options, location, ASYNC_OPTIONS);
    const { useFactory, useClass, useExisting } = options;
    if (useFactory === undefined && useClass === undefined && useExisting === undefined) {
      const expected = 'a function that returns the options, or useClass or useExisting';
      throw configError('SLUICE_MISSING_OPTION', optionMessages.missing(`${location}: useFactory`, expected));
    }
    return withSubstitutes(super.forRootAsync(options));
  }

  /** Defines additional limits by name, for the module that imports it and for all others. */
  static forFeature(definitions: Readonly<Record<string, LimitDefinition>>): DynamicModule {
    if (!isObjectOfOptions(definitions)) {
      throw new RateLimitConfigError(messages.notOptions('forFeature', definitions));
    }
    return RateLimitFeatureModule.of(definitions);
  }

  /** Called by Nest: reads all limits, and opens the store. Throws `RateLimitConfigError`. */
  async onModuleInit(): Promise<void> {
    if (this.settings.shadow) moduleLogger.warn(messages.shadowMode());
    const { options } = this.settings;
    // Most likely an environment variable that is not set.
    if (Object.hasOwn(options, 'redis') && options.redis === undefined && options.store === undefined) {
      moduleLogger.warn(messages.redisUndefined());
    }
    if (isBelowSecond(options.sendTimeout)) {
      moduleLogger.warn(optionMessages.likelySeconds('RateLimitModule.sendTimeout', options.sendTimeout));
    }
    this.startUp.run();
    this.policies?.check();
    await Promise.all([
      this.keys.ready(),
      this.resolvers.ready(),
      this.hooks.ready(),
      this.refusalResolvers.ready(),
      this.transports.open(),
    ]);
    await Promise.all([this.store.open?.(), this.rates.open()]);
    this.policies?.watch();
  }

  /** Called by Nest: waits for work that holds leases, releases them, and closes everything that the module has opened. */
  async onApplicationShutdown(): Promise<void> {
    const { redis, store } = this.settings.options;
    // Leases in process end with the process.
    if (redis !== undefined || store !== undefined) await this.queues.kept.end(LONGEST_WORK_MS);
    this.documentation.end();
    this.policies?.close();
    this.rates.close();
    await this.store.close();
  }
}

function withSubstitutes(module: DynamicModule): DynamicModule {
  const substitutes = setUpCopy();
  return substitutes.length === 0 ? module : { ...module, imports: [...(module.imports ?? []), ...substitutes] };
}

const ASYNC_OPTIONS = ['imports', 'inject', 'useFactory', 'useClass', 'useExisting'];

/** Throws for options that are not an object with known names, before Nest reads them. */
function checkExtras(options: unknown, location: string, known: readonly string[]): void {
  if (!isObjectOfOptions(options)) {
    throw new RateLimitConfigError(optionMessages.hinted(messages.notOptions(location, options), options));
  }
  // Nest copies options one by one, and would turn an option of this name into the prototype of the copy.
  if (Object.hasOwn(options, '__proto__')) {
    throw configError('SLUICE_UNKNOWN_OPTION', messages.unknownOption(location, '__proto__', [...known, 'guard']));
  }
  const { guard } = options;
  if (guard !== undefined && typeof guard !== 'boolean' && guard !== 'custom') {
    throw wrongOption(location, 'guard', guard, "true, false or 'custom'");
  }
}

/** Throws for a second module, which Nest would treat as a different module, using only one of them. */
function refuseSecond(modules: ModulesContainer): void {
  const all = [...modules.values()].filter(({ metatype }) => metatype === RateLimitModule);
  if (all.length > 1) throw configError('SLUICE_DUPLICATE_MODULE', messages.secondModule());
}

/** Makes limiters available to `app.get` and lazily loaded modules that no file had requested when Nest read the module. */
function provideLimiters(modules: ModulesContainer, names: readonly string[], limiters: LimiterService): void {
  const own = [...modules.values()].find(({ metatype }) => metatype === RateLimitModule);
  for (const name of names) {
    const token = getLimiterToken(name);
    if (own === undefined || own.providers.has(token)) continue;
    own.addProvider({ provide: token, useValue: limiters.lazily(name) });
    own.exports.add(token);
  }
}
