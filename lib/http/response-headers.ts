import { Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { CompiledLimit } from '../algorithms/limit.js';
import { RATE_LIMIT_SETTINGS, type RateLimitSettings } from '../rate-limit.settings.js';
import type { CheckResult } from '../stores/store.js';
import type { RequestParts } from '../transports/request-reader.js';
import { retryAfter } from './header-format.js';
import { limitInfo } from './limit-info.js';
import { together } from './shared-responses.js';

/** What tells whether headers can still be set: Express and Node say the first, Fastify the second. */
interface SendableResponse {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  readonly header?: unknown;
  readonly setHeader?: unknown;
}

/** Sets the headers that tell of limits, on any response that has headers. */
@Injectable()
export class ResponseHeaders {
  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly host: HttpAdapterHost,
  ) {}

  /** Tells of a result. A refusal says when to come back even if nothing else is told. */
  tell({ response, sharesResponse }: RequestParts, result: CheckResult, limits: readonly CompiledLimit[]): void {
    if (response === undefined || (result.allowed && this.settings.formatters.length === 0)) return;
    if (sharesResponse === true) ({ result, limits } = together(response, result, limits));
    const now = Date.now();
    const infos = limits.map((limit) => limitInfo(limit, now));
    for (const formatter of this.settings.formatters) {
      for (const [name, value] of Object.entries(formatter(result, infos))) this.set(response, name, value);
    }
    const seconds = retryAfter(result, infos);
    if (seconds !== undefined) this.set(response, 'Retry-After', seconds);
  }

  set(response: object | undefined, name: string, value: string): void {
    const { headersSent, sent, header, setHeader }: SendableResponse = response ?? {};
    if (headersSent === true || sent === true) return;
    if (typeof header !== 'function' && typeof setHeader !== 'function') return;
    this.host.httpAdapter?.setHeader(response, name, value);
  }
}
