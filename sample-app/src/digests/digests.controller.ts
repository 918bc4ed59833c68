import { Controller, HttpCode, HttpException, HttpStatus, Post, Res } from '@nestjs/common';
import { Limiter, LimiterService, RateLimitTimeoutError } from 'nestjs-sluice';

interface HeaderSink {
  setHeader(name: string, value: string): unknown;
}

/** A partner composes the digests, one a second, and two at once after a pause. */
@Controller('digests')
export class DigestsController {
  private readonly partner: Limiter;

  constructor(limits: LimiterService) {
    this.partner = limits.for({ name: 'partner', algo: 'gcra', rate: 1, interval: '1s', burst: 2 });
  }

  /** Waits for its turn instead of failing, but for no longer than a client would. */
  @Post()
  @HttpCode(200)
  async compose(@Res({ passthrough: true }) response: HeaderSink) {
    try {
      await this.partner.acquire('global', { timeout: 1500 });
    } catch (error) {
      if (!(error instanceof RateLimitTimeoutError)) throw error;
      response.setHeader('Retry-After', String(Math.ceil((error.decision?.retryAfterMs ?? 1500) / 1000)));
      throw new HttpException('The partner is busy', HttpStatus.TOO_MANY_REQUESTS);
    }
    return { composedAt: new Date().toISOString() };
  }
}
