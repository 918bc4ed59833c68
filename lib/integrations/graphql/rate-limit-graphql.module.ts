import {
  type CallHandler,
  type DynamicModule,
  type ExecutionContext,
  type FactoryProvider,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  type NestInterceptor,
  type OnApplicationBootstrap,
  type OnModuleInit,
  Optional,
  type Provider,
  type Type,
} from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModuleRef } from '@nestjs/core';
import type { Observable } from 'rxjs';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { moduleLogger } from '../../engine/errors/logger.js';
import { graphqlMessages } from '../../engine/errors/messages/graphql.js';
import type { Awaitable } from '../../engine/util/awaitable.js';
import { providerOf } from '../../nest/copies.js';
import { addProvider } from '../../nest/rate-limit.module.js';
import { RequestLimiter } from '../../nest/request/request-limiter.js';
import { RateLimitApolloPlugin } from './apollo.plugin.js';
import { type QueryCostSettings, type RateLimitGraphqlOptions, readGraphqlOptions } from './cost/cost-options.js';
import { hookIntoMercurius } from './mercurius.hooks.js';
import { Operations, operationServices } from './operations.js';

/** Lets the fields of an operation wait until the whole operation is decided. Other calls are limited as without GraphQL. */
@Injectable()
class FieldLimiter extends RequestLimiter {
  /** Decides operations, once an app has started that imports the module. */
  operations: Operations | undefined;

  override beforeGuards(context: ExecutionContext): Awaitable<true> {
    const decided = this.operations?.beforeGuards(context);
    return decided === undefined ? super.beforeGuards(context) : decided.then(() => super.beforeGuards(context));
  }

  override afterGuards(context: ExecutionContext): Awaitable<true> {
    const decided = this.operations?.afterGuards(context);
    return decided === undefined ? super.afterGuards(context) : decided.then(() => super.afterGuards(context));
  }
}

// The guard gets it in place of its own.
addProvider({ provide: RequestLimiter, useClass: FieldLimiter });

const FOR_ROOT = 'RateLimitGraphqlModule.forRoot';
const GRAPHQL_SETTINGS = Symbol('nestjs-sluice:graphql');

/** Options of `RateLimitGraphqlModule.forRootAsync`. */
export interface RateLimitGraphqlAsyncOptions {
  /**
   * The modules that export the dependencies of the factory.
   * @default none
   */
  imports?: ModuleMetadata['imports'] | undefined;
  /**
   * The dependencies of the factory.
   * @default none
   */
  inject?: FactoryProvider['inject'] | undefined;
  /** Returns the options when the app starts. */
  useFactory: (...args: never[]) => RateLimitGraphqlOptions | Promise<RateLimitGraphqlOptions>;
}

/**
 * Checks the limits of all fields of a GraphQL operation together, before any of them runs. Import it next to `RateLimitModule` in an app
 * with a `GraphQLModule`.
 */
@Module({})
export class RateLimitGraphqlModule implements OnModuleInit, OnApplicationBootstrap {
  /** @internal */
  constructor(
    private readonly operations: Operations,
    private readonly plugin: RateLimitApolloPlugin,
    private readonly host: HttpAdapterHost,
    private readonly modules: ModuleRef,
    @Inject(GRAPHQL_SETTINGS) private readonly settings: { readonly cost: QueryCostSettings | undefined },
    config: ApplicationConfig,
    @Optional() registry?: LimitRegistry,
  ) {
    // Nest calls no hooks of a module that is loaded lazily, so nothing would check its operations.
    if (registry?.hasStarted === true) throw loadedLazily();
    // Servers create their resolvers before all modules are initialized.
    if (settings.cost !== undefined && mayNeedUser(settings.cost, registry)) {
      config.addGlobalInterceptor(new OperationInterceptor(operations));
    }
    // A server may start before `onModuleInit` is called here.
    operations.open = () => operationServices((token) => this.find(token), settings.cost);
  }

  /** Sets up the module. Throws `RateLimitConfigError` for a wrong option. */
  static forRoot(options: RateLimitGraphqlOptions = {}): DynamicModule {
    const cost = readGraphqlOptions(options, FOR_ROOT);
    return moduleOf({ provide: GRAPHQL_SETTINGS, useValue: { cost } });
  }

  /** Sets up the module with options that are known only at start-up. */
  static forRootAsync({ imports = [], inject = [], useFactory }: RateLimitGraphqlAsyncOptions): DynamicModule {
    const make = useFactory as (...args: unknown[]) => RateLimitGraphqlOptions | Promise<RateLimitGraphqlOptions>;
    const location = `${FOR_ROOT}Async`;
    const settings: Provider = {
      provide: GRAPHQL_SETTINGS,
      useFactory: async (...args: unknown[]) => ({ cost: readGraphqlOptions(await make(...args), location) }),
      inject,
    };
    return { ...moduleOf(settings), imports };
  }

  /** Called by Nest. From here on, operations are checked. Throws `RateLimitConfigError` for an invalid limit. */
  onModuleInit(): void {
    const limiter = this.find(RequestLimiter);
    if (!(limiter instanceof FieldLimiter)) throw loadedLazily();
    limiter.operations = this.operations.ready();
  }

  /** Called by Nest after `GraphQLModule` has started its server. Throws `RateLimitConfigError` for an invalid directive. */
  onApplicationBootstrap(): void {
    if (hookIntoMercurius(this.host.httpAdapter?.getInstance(), this.operations)) return;
    if (!this.plugin.isUsed) moduleLogger.warn(graphqlMessages.noServer());
  }

  /** A part of `RateLimitModule`, which may be created later than this module. */
  private find<T>(token: Type<T> | symbol): T {
    return providerOf(this.modules, token, 'RateLimitGraphqlModule', graphqlMessages.noRateLimitModule());
  }
}

function loadedLazily(): RateLimitConfigError {
  return configError('SLUICE_LAZY_MODULE', graphqlMessages.loadedLazily());
}

/** Checks the limits that need to know the user, for apps whose other limits don't need an interceptor. */
class OperationInterceptor implements NestInterceptor {
  constructor(private readonly operations: Operations) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>> {
    const decided = this.operations.afterGuards(context);
    return decided === undefined ? next.handle() : decided.then(() => next.handle());
  }
}

/** Returns true if the cost may only be counted after the guards. A limit may not be defined yet. */
function mayNeedUser({ limits }: QueryCostSettings, registry: LimitRegistry | undefined): boolean {
  try {
    return limits.some((limit) => registry?.anywhere(limit, 'RateLimitGraphqlModule').phase !== 'guard');
  } catch {
    return true;
  }
}

function moduleOf(settings: Provider): DynamicModule {
  return {
    module: RateLimitGraphqlModule,
    providers: [settings, Operations, RateLimitApolloPlugin],
    exports: [RateLimitApolloPlugin],
  };
}
