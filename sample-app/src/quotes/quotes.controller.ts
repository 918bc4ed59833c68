import { Controller, Get, HttpException, HttpStatus, Res } from '@nestjs/common';
import { RateLimitTimeoutError } from 'nestjs-sluice';
import { OutboundLimiter } from 'nestjs-sluice/outbound';
import { QuoteProvider } from './quote-provider.js';

interface HeaderSink {
  setHeader(name: string, value: string): unknown;
}

/** Quotes come from an API of others, which all instances of the app ask together, and none too often. */
@Controller('quotes')
export class QuotesController {
  private readonly fetch: typeof fetch;

  constructor(
    private readonly provider: QuoteProvider,
    outbound: OutboundLimiter,
  ) {
    const limit = { name: 'quotes', algo: 'fixed-window', rate: 5, interval: '10s' } as const;
    this.fetch = outbound.fetch(limit, { timeout: 1500, learn: true, retry: { attempts: 2 } });
  }

  /** Waits for its turn at the provider, but for no longer than a client would. */
  @Get()
  async quote(@Res({ passthrough: true }) response: HeaderSink) {
    try {
      const answer = await this.fetch(this.provider.url);
      return { quote: await answer.text(), limit: answer.headers.get('ratelimit') };
    } catch (error) {
      if (!(error instanceof RateLimitTimeoutError)) throw error;
      response.setHeader('Retry-After', String(Math.ceil((error.decision?.retryAfterMs ?? 1500) / 1000)));
      throw new HttpException('The provider of quotes is busy', HttpStatus.TOO_MANY_REQUESTS);
    }
  }
}
