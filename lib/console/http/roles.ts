import { type CanActivate, type ExecutionContext, Inject, Injectable, Scope } from '@nestjs/common';
import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { ConsoleGuard, ReadRoutes } from '../console-options.js';
import { CONSOLE_ROUTES } from '../console-tokens.js';
import { ConsoleProblem } from '../problem.js';

/** What a user may do, beyond viewing: act on single keys for a while, or change anything. */
export type Role = 'act' | 'change';

/** Says what users may do, in a console with the option `act`. */
@Injectable()
export class Roles {
  constructor(
    @Inject(CONSOLE_ROUTES) private readonly routes: ReadRoutes,
    private readonly modules: ModuleRef,
  ) {}

  /** Whether there are users who may act on keys, but not change everything. */
  get areGiven(): boolean {
    return this.routes.act !== undefined;
  }

  /** Rejects unless the user has the role, or the larger one. What a guard throws is left to the app's filters. */
  async check(role: Role, context: ExecutionContext): Promise<void> {
    const { act, write } = this.routes;
    if (role === 'act' && act !== undefined && (await this.pass(act, context, write !== undefined))) return;
    if (write !== undefined && (await this.pass(write, context, false))) return;
    throw new ConsoleProblem(403, consoleMessages.needsRole(role, role === 'act' ? 'act' : 'write'));
  }

  /** Whether all guards pass. If others follow that may, an error is not the last word. */
  private async pass(
    guards: readonly ConsoleGuard[],
    context: ExecutionContext,
    othersFollow: boolean,
  ): Promise<boolean> {
    try {
      for (const guard of guards) {
        const answer = (await this.instance(guard, context)).canActivate(context);
        if (!(await (isObservable(answer) ? lastValueFrom(answer) : answer))) return false;
      }
      return true;
    } catch (error) {
      if (othersFollow) return false;
      throw error;
    }
  }

  private instance(guard: ConsoleGuard, context: ExecutionContext): CanActivate | Promise<CanActivate> {
    if (typeof guard !== 'function') return guard;
    if (this.modules.introspect(guard).scope === Scope.DEFAULT) return this.modules.get(guard, { strict: true });
    const request = context.switchToHttp().getRequest<object>();
    const id = ContextIdFactory.getByRequest(request);
    this.modules.registerRequestByContextId(request, id);
    return this.modules.resolve(guard, id, { strict: true });
  }
}

/** Lets those in who may act on keys: the guards of `act` or those of `write` pass. */
@Injectable()
export class ActGuard implements CanActivate {
  constructor(private readonly roles: Roles) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    await this.roles.check('act', context);
    return true;
  }
}

/** Lets those in who may change anything: the guards of `write` pass. */
@Injectable()
export class ChangeGuard implements CanActivate {
  constructor(private readonly roles: Roles) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    await this.roles.check('change', context);
    return true;
  }
}
