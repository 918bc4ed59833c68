import {
  applyDecorators,
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Inject,
  Injectable,
  Req,
  RequestMapping,
  RequestMethod,
  Res,
  type Type,
  UseFilters,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { SkipRateLimit } from '../../nest/decorators.js';
import { actorOf, type Cause, ConsoleProblem } from '../problem.js';
import { CONSOLE_ROUTES, type ConsoleGuard, type ReadRoutes } from '../console-options.js';
import { Fields } from '../fields.js';
import { RateLimitConsole } from '../rate-limit-console.js';
import { ActGuard, ChangeGuard, ConsoleRequestGuard, READ_ONLY, Roles } from './guards.js';
import { clientOf, type ConsoleRequest, contextOf, Exchange, OPEN, type Route, type RouteRole } from './route.js';
import { ROUTES } from './routes.js';

/** Marks controllers for `@nestjs/swagger` that are not part of the app's API. */
const NOT_DOCUMENTED = 'swagger/apiExcludeController';

/** Responds with problem details. Errors of the app's own guards are left to the app's filters. */
@Catch(ConsoleProblem)
class ConsoleProblemFilter implements ExceptionFilter<ConsoleProblem> {
  constructor(private readonly host: HttpAdapterHost) {}

  catch(problem: ConsoleProblem, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    new Exchange(this.host.httpAdapter, http.getRequest<ConsoleRequest>(), http.getResponse<object>()).problem(problem);
  }
}

/** Calls routes. A request is validated completely before anything is done, and no interceptor of the app changes the response. */
@Injectable()
abstract class RoutesController {
  constructor(
    private readonly console: RateLimitConsole,
    private readonly host: HttpAdapterHost,
    private readonly roles: Roles,
    @Inject(CONSOLE_ROUTES) private readonly routes: ReadRoutes,
  ) {}

  async serve(route: Route, request: ConsoleRequest, response: object): Promise<void> {
    const exchange = new Exchange(this.host.httpAdapter, request, response);
    const isChange = route.method === 'POST' && route.role !== 'view';
    const fields = fieldsOf(route, request, isChange);
    const reason = isChange ? fields.reason() : '';
    const answer = await route.read({
      console: this.console,
      exchange,
      client: clientOf(request, this.console.ipv6Prefix),
      fields,
      folder: this.routes.path.split('/').at(-1)!,
      cause: () => this.causeOf(request, reason),
      checkEnds: (hasEnd, replaces) => this.checkEnds(request, hasEnd, replaces),
    });
    fields.check();
    const body = await answer();
    if (body !== undefined) exchange.json(body);
  }

  private async causeOf(request: ConsoleRequest, reason: string): Promise<Cause> {
    const { actor } = this.console.settings;
    return actor === undefined ? { reason } : { by: actorOf(await actor(contextOf(request))), reason };
  }

  private async checkEnds(request: ConsoleRequest, hasEnd: boolean, replaces: () => Promise<boolean>): Promise<void> {
    if (this.roles.areGiven && (!hasEnd || (await replaces()))) {
      await this.roles.check('change', contextOf(request));
    }
  }
}

function fieldsOf({ method, fields }: Route, { body, query }: ConsoleRequest, isChange: boolean): Fields {
  if (fields === undefined) return Fields.ofQuery({});
  if (method === 'GET') return Fields.ofQuery(query, ...fields);
  return Fields.ofBody(body, ...fields, ...(isChange ? ['reason'] : []));
}

/** The controllers of a console: made for each one, since Nest reads path and guards from the class. */
export function consoleControllers({ path, guards, act, write = [READ_ONLY] }: ReadRoutes): Type[] {
  // Without roles, Nest itself calls the guards of changes.
  const [mayAct, mayChange] = act === undefined ? [write, write] : [[ActGuard], [ChangeGuard]];
  return [
    controllerOf('RateLimitConsoleController', 'view', path, guards),
    controllerOf('RateLimitConsoleActController', 'act', path, [...guards, ...mayAct]),
    controllerOf('RateLimitConsoleWriteController', 'change', path, [...guards, ...mayChange]),
  ];
}

function controllerOf(name: string, role: RouteRole, path: string, guards: readonly ConsoleGuard[]): Type {
  class ConsoleController extends RoutesController {}
  Object.defineProperty(ConsoleController, 'name', { value: name });
  applyDecorators(
    Controller({ path, version: VERSION_NEUTRAL }),
    SkipRateLimit({ because: 'it answers operators only' }),
    UseFilters(ConsoleProblemFilter),
    UseGuards(ConsoleRequestGuard, ...guards),
  )(ConsoleController);
  Reflect.defineMetadata(NOT_DOCUMENTED, [true], ConsoleController);
  for (const route of ROUTES) if (route.role === role) addHandler(ConsoleController.prototype, route);
  return ConsoleController;
}

function addHandler(prototype: RoutesController, route: Route): void {
  const { method, path } = route;
  const name =
    method.toLowerCase() + path.replaceAll(/\W*(\w)(\w*)/g, (_, first: string, rest) => first.toUpperCase() + rest);
  const handlers = {
    [name](this: RoutesController, request: ConsoleRequest, response: object) {
      return this.serve(route, request, response);
    },
  };
  const descriptor = Object.getOwnPropertyDescriptor(handlers, name)!;
  Object.defineProperty(prototype, name, descriptor);
  Req()(prototype, name, 0);
  Res()(prototype, name, 1);
  RequestMapping({ path, method: RequestMethod[method] })(prototype, name, descriptor);
  if (route.isOpen) Reflect.defineMetadata(OPEN, true, descriptor.value as object);
}
