import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { RateLimitSettings } from '../../app/config/settings.js';
import { RATE_LIMIT_SETTINGS } from '../../app/config/tokens.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { RateLimitDeniedException } from '../../app/http/rate-limit-denied.exception.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import { LimiterService } from '../../nest/limiter.service.js';
import { DeniedAddresses } from '../../nest/request/denied-addresses.js';
import { headerOf } from '../../app/transports/header-of.js';
import { CONSOLE_HEADER } from '../api.js';
import { CONSOLE_LIMIT, tooMany } from '../console-limit.js';
import { ConsoleProblem } from '../problem.js';
import { clientOf, type ConsoleRequest, keepContext } from './exchange.js';
import { OPEN } from './route.js';

/** Checks each request before the app's own guards do: it stops clients that send too many, and pages of other sites. */
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
    // The routes of the console are exempt from limits, so the app's guard does not check denied addresses here.
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

/** Whether a request does not come from another site's page: browsers send one of two headers that show this. */
function isSameOrigin({ headers }: ConsoleRequest): boolean {
  const site = headerOf(headers, 'sec-fetch-site');
  const origin = headerOf(headers, 'origin');
  // Somebody who types an address can read only what they may see anyway.
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && origin === undefined);
  if (origin === undefined) return true;
  return URL.canParse(origin) && new URL(origin).host === headerOf(headers, 'host');
}

/** A form on another site can send neither the header nor JSON. */
function assertPage({ headers }: ConsoleRequest): void {
  if (headerOf(headers, CONSOLE_HEADER) !== '1')
    throw new ConsoleProblem(403, consoleMessages.noHeader(CONSOLE_HEADER));
  const type = headerOf(headers, 'content-type');
  if (type === undefined || !/^application\/json\s*(?:;|$)/i.test(type)) {
    throw new ConsoleProblem(400, consoleMessages.notJson(type));
  }
}

/** The guard of changes if no `write` guards are set. */
@Injectable()
export class ReadOnlyGuard implements CanActivate {
  canActivate(): boolean {
    throw new ConsoleProblem(403, consoleMessages.readOnly());
  }
}
