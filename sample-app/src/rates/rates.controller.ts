import { Body, Controller, Get, HttpCode, Post } from '@nestjs/common';
import { LimiterService, RateLimit } from 'nestjs-sluice';

interface NewRate {
  rate?: string;
}

/** FOR THE DEMO ONLY: a real app lets its operators do this, and nobody else. */
@Controller('rates')
export class RatesController {
  constructor(private readonly limits: LimiterService) {}

  @Get()
  list() {
    return this.limits.listRates();
  }

  /** Lets people search more often, or less, for a minute: on all instances, without a deploy. */
  @Post('search')
  @HttpCode(200)
  @RateLimit({ name: 'change-rates', algo: 'fixed-window', rate: 5, interval: '1m' })
  async change(@Body() body: NewRate | undefined) {
    await this.limits.setRate('search', { rate: Number(body?.rate ?? 10) }, { expiresIn: '1m' });
    return this.limits.getRate('search');
  }
}
