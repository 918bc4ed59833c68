import type { INestApplicationContext, Type } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { RATE_LIMIT_STORE } from '../../../lib/app/config/tokens.js';
import { LimitRegistry } from '../../../lib/app/rules/limit-registry.js';
import { RouteRulesRegistry } from '../../../lib/app/rules/route-rules-registry.js';
import type { Layer } from '../../../lib/storage/stores/layers/store-layer.js';
import { RateLimitInterceptor } from '../../../lib/nest/rate-limit.enhancers.js';
import type { CompiledLimit } from '../../../lib/testing/store/index.js';

/** The store that an app's limits count in, with all its layers. `isBroken` is true while the store is skipped after failures. */
export function storeOf(app: INestApplicationContext): Layer {
  return app.get<Layer>(RATE_LIMIT_STORE, { strict: false });
}

/** The limit by which an app counts a key, of a limit that has a name. */
export function limitInForce(app: INestApplicationContext, name: string, key: string): CompiledLimit {
  return app.get(LimitRegistry, { strict: false }).rule(name, { location: 'test', namespace: '' }).limitFor(key);
}

/** The limits of the module, which count every request: as they are in force, and as they were configured. */
export function moduleLimits(app: INestApplicationContext) {
  const [first, ...others] = app.get(LimitRegistry, { strict: false }).moduleRules;
  return [first!, ...others] as const;
}

/** The namespaces of the limits that guard a route. */
export function namespacesOf(app: INestApplicationContext, type: Type, handler: object): string[] {
  const { guard } = app.get(RouteRulesRegistry, { strict: false }).of(type, handler);
  return guard.map(({ limit }) => limit.namespace);
}

/** The interceptor of an app's limits, for tests that call handlers as Nest does. */
export function interceptorOf(app: INestApplicationContext): RateLimitInterceptor {
  return app.get(RateLimitInterceptor, { strict: false });
}

/** True if the interceptor runs for every handler of the app. */
export function interceptsAll(app: INestApplicationContext): boolean {
  const interceptors = app.get(ApplicationConfig).getGlobalInterceptors();
  return interceptors.some((each) => each instanceof RateLimitInterceptor);
}
