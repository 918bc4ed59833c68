import { Body, Controller, Get, HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import { InjectLimiter, Limiter, RateLimit, SkipRateLimit } from 'nestjs-sluice';
import { DemoAuthGuard, type DemoRequest } from '../auth/demo-auth.guard.js';

interface Payment {
  id?: string;
  units?: string;
}

@Controller('invoices')
@UseGuards(DemoAuthGuard)
export class InvoicesController {
  constructor(@InjectLimiter('invoices') private readonly plan: Limiter) {}

  /** 3 a month that begins on the 31st; half of what is left moves on, and what was paid for comes behind it. */
  @Get()
  @RateLimit('invoices')
  list() {
    return { invoices: ['a gate', 'two sluices'] };
  }

  /** As the webhook of a payment provider does: of one `id` the first call counts. */
  @Post('credits')
  @HttpCode(200)
  @SkipRateLimit()
  async pay(@Req() { user }: DemoRequest, @Body() { id = 'payment', units = '1' }: Payment) {
    return { credits: await this.plan.credit(`user:${user?.id}`, Number(units), { id }) };
  }
}
