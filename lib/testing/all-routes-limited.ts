import { AssertionError } from 'node:assert';
import type { Type } from '@nestjs/common';
import { HandlerClasses } from '../app/rules/handler-classes.js';
import { LimitRegistry } from '../app/rules/limit-registry.js';
import { RoutePaths } from '../app/rules/route-paths.js';
import { RouteRulesRegistry } from '../app/rules/route-rules-registry.js';
import { messages } from '../engine/errors/messages/general.js';
import { providerOf } from '../nest/copies.js';
import { listRoutes } from '../nest/routes/route-list.js';

/** The part of an app that is used. */
export interface TestedApp {
  /** Returns a provider of any module. */
  get<T>(token: Type<T>, options: { readonly strict: false }): T;
}

/**
 * Asserts that each route has a limit, or an exception with a reason: `@SkipRateLimit({ because: '…' })`. Throws an `AssertionError` of
 * `node:assert` that lists the others. Routes are those over HTTP, of GraphQL, gateways, microservices and MCP. Limits whose mode is
 * `'off'` don't count, those in shadow mode do. Throws `RateLimitConfigError` if the app doesn't import `RateLimitModule`.
 *
 * @param app the app, after `init()`
 * @example
 * ```ts
 * expectAllRoutesLimited(app);
 * ```
 */
export function expectAllRoutesLimited(app: TestedApp): void {
  const find = <T>(token: Type<T>): T => providerOf(app, token, 'expectAllRoutesLimited');
  const routes = listRoutes({
    registry: find(LimitRegistry),
    rules: find(RouteRulesRegistry),
    classes: find(HandlerClasses),
    paths: find(RoutePaths),
  });
  const unlimited = routes.filter((route) => route.unlimited);
  if (unlimited.length === 0) return;
  const lines = unlimited.map(({ route, controller, handler }) => `${route} (${controller}.${handler})`);
  throw new AssertionError({
    message: messages.unlimitedRoutes(lines, routes.length),
    actual: lines,
    expected: [],
    operator: 'expectAllRoutesLimited',
    stackStartFn: expectAllRoutesLimited,
  });
}
