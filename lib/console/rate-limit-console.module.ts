import { type CanActivate, type DynamicModule, Module, type Provider, type Type } from '@nestjs/common';
import {
  CONSOLE_ROUTES,
  CONSOLE_SETTINGS,
  type RateLimitConsoleAsyncOptions,
  type RateLimitConsoleOptions,
  type RateLimitConsoleSettings,
  readAsyncOptions,
  readGivenSettings,
  readOptions,
  type ReadRoutes,
} from './console-options.js';
import type { Awaitable } from '../engine/util/awaitable.js';
import { consoleControllers } from './http/controllers.js';
import { Roles } from './http/guards.js';
import { RateLimitConsole } from './rate-limit-console.js';

/**
 * A page that shows the app's limits at work and lets you change them. Import it next to `RateLimitModule`, in an app that serves HTTP.
 *
 * @example
 * ```ts
 * RateLimitConsoleModule.forRoot({ path: 'ops/limits', guards: [OpsGuard], write: [AdminGuard] })
 * ```
 */
@Module({})
export class RateLimitConsoleModule {
  /** Sets up the console. Throws `RateLimitConfigError` if an option is invalid or `guards` is missing. */
  static forRoot(options: RateLimitConsoleOptions): DynamicModule {
    const { routes, settings } = readOptions(options, 'RateLimitConsoleModule.forRoot');
    return moduleOf(routes, { provide: CONSOLE_SETTINGS, useValue: settings });
  }

  /** Sets up the console with settings that are known only at start-up. Pass path and guards next to the factory. */
  static forRootAsync(options: RateLimitConsoleAsyncOptions): DynamicModule {
    const location = 'RateLimitConsoleModule.forRootAsync';
    const routes = readAsyncOptions(options, location);
    const make = options.useFactory as (...args: unknown[]) => Awaitable<RateLimitConsoleSettings>;
    return moduleOf(routes, {
      provide: CONSOLE_SETTINGS,
      useFactory: async (...args: unknown[]) => readGivenSettings(await make(...args), location),
      inject: options.inject ?? [],
    });
  }
}

/** @internal The module of a console with validated options. */
export function moduleOf(routes: ReadRoutes, settings: Provider): DynamicModule {
  return {
    module: RateLimitConsoleModule,
    imports: routes.imports,
    controllers: consoleControllers(routes),
    providers: [settings, { provide: CONSOLE_ROUTES, useValue: routes }, RateLimitConsole, Roles, ...guardsOf(routes)],
  };
}

/** The guards that the console itself calls, if users have roles. */
function guardsOf({ act, write = [] }: ReadRoutes): Type[] {
  return act === undefined
    ? []
    : [...new Set([...act, ...write].filter((guard): guard is Type<CanActivate> => typeof guard === 'function'))];
}
