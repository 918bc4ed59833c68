import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Inject,
  Optional,
  SetMetadata,
} from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { RateLimitExceededException } from '../app/http/rate-limit-exceeded.exception.js';
import { ThrownRefusals } from './request/thrown-refusals.js';
import { isGateway } from '../app/rules/route-names.js';
import { FILTERS, OWN_FILTER } from '../app/transports/ws.reader.js';
import { bindForApp } from './bind-for-app.js';
import { rethrow } from '../engine/errors/reasons.js';

/** Sends rejections that the app's own code throws to clients of gateways, in the form of the guard's rejections. */
@SetMetadata(OWN_FILTER, true)
@Catch(RateLimitExceededException)
class GatewayRefusalsFilter implements ExceptionFilter<RateLimitExceededException> {
  /** The app of this filter; `undefined` in an app without limits that shares the gateway's class. */
  @Optional()
  @Inject(ThrownRefusals)
  refusals: ThrownRefusals | undefined;

  async catch(exception: RateLimitExceededException, host: ArgumentsHost): Promise<void> {
    const { BaseWsExceptionFilter } = await import('@nestjs/websockets').catch(rethrow);
    if (this.refusals === undefined) {
      new BaseWsExceptionFilter().catch(exception, host);
      return;
    }
    const reader = this.refusals.readerOf(host);
    try {
      await this.refusals.complete(exception, host);
      const refusal = await (reader.refuse === undefined
        ? exception
        : reader.refuse(exception, host as ExecutionContext));
      new BaseWsExceptionFilter().catch(refusal, host);
    } catch {
      // The client has left, or its reader fails, so there is nobody to inform.
    }
  }
}

/**
 * Binds the filter to all gateways, because global filters don't run for them. The last matching filter wins, so the app's own have
 * precedence.
 */
export function bindGatewayFilters(modules: ModulesContainer, refusals: ThrownRefusals): void {
  const instance = Object.assign(new GatewayRefusalsFilter(), { refusals });
  for (const module of modules.values()) {
    for (const { metatype: type } of module.providers.values()) {
      if (typeof type !== 'function' || !isGateway(type)) continue;
      bindForApp({ key: FILTERS, kind: 'filter' }, { type, module }, { type: GatewayRefusalsFilter, instance });
    }
  }
}
