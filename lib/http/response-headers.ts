import { Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { CompiledLimit } from '../algorithms/limit.js';
import { RATE_LIMIT_SETTINGS, type RateLimitSettings } from '../rate-limit.settings.js';
import type { CheckResult } from '../stores/store.js';
import { retryAfter } from './header-format.js';
import { limitInfo } from './limit-info.js';
import { RATE_LIMIT_RANDOM, spreadWaits } from './retry-jitter.js';

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
    @Inject(RATE_LIMIT_RANDOM) private readonly random: () => number,
  ) {}

  /** Tells of a result. A refusal says when to come back even if nothing else is told. */
  tell(response: object | undefined, exact: CheckResult, limits: readonly CompiledLimit[]): void {
    const { formatters, retryJitter } = this.settings;
    if (response === undefined || (exact.allowed && formatters.length === 0)) return;
    // One number a response, so that its headers agree.
    const result = exact.allowed || retryJitter === 0 ? exact : spreadWaits(exact, this.random() * retryJitter);
    const now = Date.now();
    const infos = limits.map((limit) => limitInfo(limit, now));
    for (const formatter of formatters) {
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
