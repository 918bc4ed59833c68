import { type CanActivate, type ExecutionContext, Inject, Injectable, Optional, SetMetadata } from '@nestjs/common';
import type { MetadataScanner, ModulesContainer } from '@nestjs/core';
import { bindsOwnGuard, GUARDS, OWN_GUARD } from '../app/rules/bound-guards.js';
import { bindForApp } from './bind-for-app.js';

/** Nest's metadata key of message handlers, in Nest 11 and 12, and of tools, prompts and resources of `@rekog/mcp-nest`. */
const MESSAGE_HANDLER = 'microservices:handler_type';

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

/**
 * Binds the app's guard to controllers that handle messages. In a hybrid app, global guards only run for these with `inheritAppConfig:
 * true`; otherwise no limit would apply.
 */
export function bindToMessages(modules: ModulesContainer, scanner: MetadataScanner, ofApp: GuardOfApp): void {
  const instance = Object.assign(new MessageGuard(), { ofApp });
  for (const module of modules.values()) {
    for (const { metatype: type } of module.controllers.values()) {
      if (typeof type !== 'function' || bindsOwnGuard(type)) continue;
      const prototype = type.prototype as Record<string, object>;
      const names = scanner.getAllMethodNames(prototype);
      if (!names.some((name) => Reflect.hasMetadata(MESSAGE_HANDLER, prototype[name]!))) continue;
      bindForApp({ key: GUARDS, kind: 'guard' }, { type, module }, { type: MessageGuard, instance });
    }
  }
}
