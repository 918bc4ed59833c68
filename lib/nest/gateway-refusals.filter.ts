import { type ArgumentsHost, Catch, type ExceptionFilter, type ExecutionContext, SetMetadata } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { RateLimitExceededException } from '../http/rate-limit-exceeded.exception.js';
import { searchRequest } from '../request/requests.js';
import { isGateway } from '../rules/route-names.js';
import { FILTERS, OWN_FILTER, wsReader } from '../transports/ws.reader.js';

/** Sends refusals of the app's own code to clients of gateways in the form of the guard's refusals. Apps can share it. */
@SetMetadata(OWN_FILTER, true)
@Catch(RateLimitExceededException)
class GatewayRefusalsFilter implements ExceptionFilter<RateLimitExceededException> {
  async catch(exception: RateLimitExceededException, host: ArgumentsHost): Promise<void> {
    const context = host as ExecutionContext;
    const { BaseWsExceptionFilter } = await import('@nestjs/websockets');
    const { reader = wsReader } = searchRequest(context) ?? {};
    try {
      const refusal = await (reader.refuse === undefined ? exception : reader.refuse(exception, context));
      new BaseWsExceptionFilter().catch(refusal, host);
    } catch {
      // The client is gone, or its reader fails: there is nobody to inform.
    }
  }
}
const filter = new GatewayRefusalsFilter();

/** Binds the filter to all gateways, which no global filter reaches. The last match wins, so the app's own come first. */
export function bindGatewayFilters(modules: ModulesContainer): void {
  for (const { providers } of modules.values()) {
    for (const { metatype } of providers.values()) {
      if (typeof metatype !== 'function' || !isGateway(metatype)) continue;
      const bound = (Reflect.getMetadata(FILTERS, metatype) as readonly object[] | undefined) ?? [];
      if (!bound.includes(filter)) Reflect.defineMetadata(FILTERS, [filter, ...bound], metatype);
    }
  }
}
