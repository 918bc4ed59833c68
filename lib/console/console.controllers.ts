import { Controller, type Type, UseFilters, UseGuards, VERSION_NEUTRAL } from '@nestjs/common';
import { SkipRateLimit } from '../nest/decorators/skip-rate-limit.decorator.js';
import type { ReadRoutes } from './console-options.js';
import { ConsoleProblemFilter } from './http/console-problem.filter.js';
import { ConsoleRequestGuard, ReadOnlyGuard } from './http/console-request.guard.js';
import { ActController } from './http/act.controller.js';
import { DeviationsController } from './http/deviations.controller.js';
import { ReadController } from './http/read.controller.js';
import { ActGuard, ChangeGuard } from './http/roles.js';
import { WriteController } from './http/write.controller.js';

/** Marks controllers for `@nestjs/swagger` that are not part of the app's API. */
const NOT_DOCUMENTED = 'swagger/apiExcludeController';

/** The controllers of a console: made for each one, since Nest reads path and guards from the class. */
export function consoleControllers({ path, guards, act, write = [ReadOnlyGuard] }: ReadRoutes): Type[] {
  // Without roles, Nest itself calls the guards of changes.
  const [mayAct, mayChange] = act === undefined ? [write, write] : [[ActGuard], [ChangeGuard]];
  const route = { path, version: VERSION_NEUTRAL } as const;

  @Controller(route)
  @SkipRateLimit()
  @UseFilters(ConsoleProblemFilter)
  @UseGuards(ConsoleRequestGuard, ...guards)
  class RateLimitConsoleController extends ReadController {}

  @Controller(route)
  @SkipRateLimit()
  @UseFilters(ConsoleProblemFilter)
  @UseGuards(ConsoleRequestGuard, ...guards, ...mayAct)
  class RateLimitConsoleActController extends ActController {}

  @Controller(route)
  @SkipRateLimit()
  @UseFilters(ConsoleProblemFilter)
  @UseGuards(ConsoleRequestGuard, ...guards, ...mayChange)
  class RateLimitConsoleWriteController extends WriteController {}

  @Controller(route)
  @SkipRateLimit()
  @UseFilters(ConsoleProblemFilter)
  @UseGuards(ConsoleRequestGuard, ...guards)
  class RateLimitConsoleDeviationsController extends DeviationsController {}

  const controllers = [
    RateLimitConsoleController,
    RateLimitConsoleDeviationsController,
    RateLimitConsoleActController,
    RateLimitConsoleWriteController,
  ];
  for (const controller of controllers) Reflect.defineMetadata(NOT_DOCUMENTED, [true], controller);
  return controllers;
}
