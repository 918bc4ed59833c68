import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { RateLimit, RateLimitDecision, type RequestDecision } from 'nestjs-sluice';

interface Text {
  text?: string;
}

/** What a summary may cost, before anyone knows what it did. */
const ESTIMATE = 400;

@Controller('summaries')
export class SummariesController {
  /** A language model is paid by the token, and how many it took is known only afterwards: the difference is settled. */
  @Post()
  @HttpCode(200)
  @RateLimit({ name: 'model-tokens', algo: 'token-bucket', rate: 1000, interval: '1h', cost: ESTIMATE })
  async summarize(@Body() body: Text | undefined, @RateLimitDecision() decision: RequestDecision) {
    const words = (body?.text ?? '').split(/\s+/);
    const tokens = 100 + 10 * words.length;
    await decision.settle(tokens);
    return { summary: words.slice(0, 3).join(' '), tokens };
  }
}
