import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Inject,
  Injectable,
  Optional,
  SetMetadata,
  type Type,
} from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { RateLimitExceededException } from '../app/http/rate-limit.exceptions.js';
import { bindsOwnGuard, GUARDS, OWN_GUARD } from '../app/rules/guard-check.js';
import { isGateway } from '../app/rules/route-names.js';
import { FILTERS, OWN_FILTER } from '../app/transports/ws.reader.js';
import { rethrow } from '../engine/errors/reasons.js';
import { ThrownRefusals } from './request/thrown-refusals.js';

type Module = ModulesContainer extends Map<string, infer M> ? M : never;

/**
 * Binds one of our guards or filters to a class of the app, before other enhancers, with the instance that serves this app. The apps of a
 * process share the metadata, which only contains the class; each app has its own instance in its module. In all apps but the first, Nest
 * creates that instance itself, possibly after this call. So the class must not have constructor parameters: Nest injects the parts of the
 * app into its properties. In an app without limits they stay empty, and the class does nothing.
 */
function bindForApp(kind: 'guard' | 'filter', type: object, module: Module, instance: object): void {
  const key = kind === 'guard' ? GUARDS : FILTERS;
  const own = instance.constructor as Type;
  const others = (Reflect.getMetadata(key, type) as readonly object[] | undefined) ?? [];
  if (!others.includes(own)) Reflect.defineMetadata(key, [own, ...others], type);
  module.addInjectable({ provide: own, useValue: instance }, kind);
}

/** Finds the guard of an app, once its module is set up. */
@Injectable()
export class GuardOfApp {
  find: () => CanActivate | undefined = () => undefined;
}

/** Checks messages with the app's guard. The guard charges a message once, even if Nest's global guards also run for it. */
@SetMetadata(OWN_GUARD, 'shared')
class MessageGuard implements CanActivate {
  /** The app of this instance; `undefined` in an app without limits that shares the controller's class. */
  @Optional()
  @Inject(GuardOfApp)
  ofApp: GuardOfApp | undefined;

  canActivate(context: ExecutionContext): ReturnType<CanActivate['canActivate']> {
    // Global guards run for the routes of such a controller.
    if (context.getType() === 'http') return true;
    return this.ofApp?.find()?.canActivate(context) ?? true;
  }
}

/** Binds something to a class of a module. */
export type BindTo = (type: Type, module: Module) => void;

/**
 * Binds the app's guard to a controller that handles messages. In a hybrid app, global guards only run for these with `inheritAppConfig:
 * true`; otherwise no limit would apply.
 */
export function messageGuard(ofApp: GuardOfApp): BindTo {
  const instance = Object.assign(new MessageGuard(), { ofApp });
  return (type, module) => {
    if (!bindsOwnGuard(type)) bindForApp('guard', type, module, instance);
  };
}

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
      if (typeof type === 'function' && isGateway(type)) bindForApp('filter', type, module, instance);
    }
  }
}
