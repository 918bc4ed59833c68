import { type CanActivate, type ExecutionContext, Inject, Injectable, Scope, type Type } from '@nestjs/common';
import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { CONSOLE_ROUTES, type ConsoleGuard, type ReadRoutes } from '../console-options.js';
import { ConsoleProblem } from '../problem.js';
import type { RateLimitSettings } from '../../app/config/settings.js';
import { RATE_LIMIT_SETTINGS } from '../../app/config/tokens.js';
import { RateLimitDeniedException } from '../../app/http/rate-limit.exceptions.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import { LimiterService } from '../../nest/limiter.service.js';
import { DeniedAddresses } from '../../nest/request/denied-addresses.js';
import { headerOf } from '../../app/transports/request-reader.js';
import { CONSOLE_HEADER } from '../api.js';
import { CONSOLE_LIMIT, tooMany } from '../limit-catalog.js';
import { clientOf, type ConsoleRequest, keepContext, OPEN, type RouteRole } from './route.js';

/** Checks each request before the app's own guards: rejects clients that send too many requests, and pages of other sites. */
@Injectable()
export class ConsoleRequestGuard implements CanActivate {
  private readonly limiter: Limiter;

  constructor(
    service: LimiterService,
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly denied: DeniedAddresses,
  ) {
    this.limiter = service.for(CONSOLE_LIMIT);
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<ConsoleRequest & { method: string }>();
    // The routes of the console are exempt from limits, so the app's guard doesn't check denied addresses here.
    if (this.denied.mayRefuse && this.denied.refuses({ parts: { request } })) {
      throw new RateLimitDeniedException(this.settings.options.lists?.status);
    }
    const identity = clientOf(request, this.settings.ipv6Prefix);
    const { allowed, retryAfterMs } = await this.limiter.consume(identity);
    if (!allowed) throw tooMany(retryAfterMs);
    if (Reflect.getMetadata(OPEN, context.getHandler()) !== true) {
      if (!isSameOrigin(request)) throw new ConsoleProblem(403, consoleMessages.crossOrigin());
      if (request.method === 'POST') assertPage(request);
    }
    keepContext(context);
    return true;
  }
}

/** Returns true unless the request comes from another site's page. Browsers send one of two headers that reveal this. */
function isSameOrigin({ headers }: ConsoleRequest): boolean {
  const site = headerOf(headers, 'sec-fetch-site');
  const origin = headerOf(headers, 'origin');
  // A user who types the address only gets data that they may view anyway.
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && origin === undefined);
  if (origin === undefined) return true;
  return URL.canParse(origin) && new URL(origin).host === headerOf(headers, 'host');
}

/** Rejects forms of other sites, which can send neither the header nor JSON. */
function assertPage({ headers }: ConsoleRequest): void {
  if (headerOf(headers, CONSOLE_HEADER) !== '1')
    throw new ConsoleProblem(403, consoleMessages.noHeader(CONSOLE_HEADER));
  const type = headerOf(headers, 'content-type');
  if (type === undefined || !/^application\/json\s*(?:;|$)/i.test(type)) {
    throw new ConsoleProblem(400, consoleMessages.notJson(type));
  }
}

/** The guard of changes if there are no `write` guards. */
export const READ_ONLY: CanActivate = {
  canActivate() {
    throw new ConsoleProblem(403, consoleMessages.readOnly());
  },
};

/** A role beyond viewing: act on single keys temporarily, or change everything. */
type Role = Exclude<RouteRole, 'view'>;

/** Determines the role of a user, in a console with the option `act`. */
@Injectable()
export class Roles {
  constructor(
    @Inject(CONSOLE_ROUTES) private readonly routes: ReadRoutes,
    private readonly modules: ModuleRef,
  ) {}

  /** True if some users may act on keys without being allowed to change everything. */
  get areGiven(): boolean {
    return this.routes.act !== undefined;
  }

  /** Rejects unless the user has the role or the larger one. Exceptions of guards are left to the app's filters. */
  async check(role: Role, context: ExecutionContext): Promise<void> {
    const { act, write } = this.routes;
    if (role === 'act' && act !== undefined && (await this.pass(act, context, write !== undefined))) return;
    if (write !== undefined && (await this.pass(write, context, false))) return;
    throw new ConsoleProblem(403, consoleMessages.needsRole(role, role === 'act' ? 'act' : 'write'));
  }

  /** Resolves to true if all guards pass. While other guards may still pass, an error isn't final. */
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

/** A guard that admits users who have the role or the larger one. */
function guardOf(role: Role): Type<CanActivate> {
  @Injectable()
  class RoleGuard implements CanActivate {
    constructor(private readonly roles: Roles) {}

    async canActivate(context: ExecutionContext): Promise<boolean> {
      await this.roles.check(role, context);
      return true;
    }
  }
  return RoleGuard;
}

export const ActGuard = guardOf('act');
export const ChangeGuard = guardOf('change');
