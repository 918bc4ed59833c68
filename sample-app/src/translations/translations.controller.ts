import { Body, Controller, Get, HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import { type CheckResult, InjectLimiter, Limiter, RateLimit, RateLimitDecision } from 'nestjs-sluice';
import { DemoAuthGuard, type DemoRequest } from '../auth/demo-auth.guard.js';

const GERMAN: ReadonlyMap<string, string> = new Map([
  ['gate', 'Tor'],
  ['nest', 'Nest'],
  ['sluice', 'Schleuse'],
]);

interface Text {
  text?: string;
}

@Controller('translations')
@UseGuards(DemoAuthGuard)
export class TranslationsController {
  constructor(@InjectLimiter('daily-translations') private readonly daily: Limiter) {}

  /** 5 a day for each user. It counts users, so it is checked after the guard that finds them. */
  @Post()
  @HttpCode(200)
  @RateLimit('daily-translations')
  translate(@Body() body: Text | undefined, @RateLimitDecision() { decisions }: CheckResult) {
    const text = body?.text ?? '';
    const leftToday = decisions.find(({ limit }) => limit === this.daily.name)?.remaining;
    return { text, german: GERMAN.get(text) ?? null, leftToday };
  }

  /** What a user took today and on the last 7 days. Reading it takes nothing from the quota. */
  @Get('usage')
  @RateLimit({ algo: 'fixed-window', rate: 5, interval: '10s', key: 'user' })
  async usage(@Req() { user }: DemoRequest) {
    const days = await this.daily.history(`user:${user?.id}`);
    return { user: user?.id, days: days.map(({ start, count }) => ({ since: new Date(start).toISOString(), count })) };
  }
}
