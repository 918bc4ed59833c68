import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Body, Controller, Get, Header, HttpCode, Post, StreamableFile } from '@nestjs/common';
import { LimiterService, RateLimit, RateLimitExceededException, type ReservedCheck, usd } from 'nestjs-sluice';

interface Prompt {
  text?: string;
}

/** The most tokens that an answer may have, which nobody knows before. */
const MOST_TOKENS = 100;
/** What a million tokens cost, in micro-units. */
const PRICE = usd(60);

@Controller('completions')
export class CompletionsController {
  constructor(private readonly limiters: LimiterService) {}

  /** Requests, tokens and money of a call are reserved together, before the model is asked, and settled at what it took. */
  @Post()
  @HttpCode(200)
  async complete(@Body() prompt: Prompt | undefined): Promise<StreamableFile> {
    const call = await this.limiters.reserve([
      { limit: 'model-requests', key: 'org:1' },
      { limit: 'completion-tokens', key: 'org:1', cost: MOST_TOKENS },
      { limit: 'model-money', key: 'org:1', cost: priceOf(MOST_TOKENS) },
    ]);
    if (!call.allowed) throw new RateLimitExceededException(call);
    return new StreamableFile(Readable.from(this.answer(prompt?.text ?? '', call)), { type: 'text/plain' });
  }

  /** What the invoices of the last 400 days are made of: a line for each customer and day. */
  @Get('usage.csv')
  @Header('Content-Type', 'text/csv')
  @RateLimit({ algo: 'fixed-window', rate: 5, interval: '1m' })
  usage(): StreamableFile {
    return new StreamableFile(Readable.from(this.csv()));
  }

  private async *csv(): AsyncGenerator<string> {
    yield 'key,day,micro-dollars\n';
    for await (const { key, day, units } of this.limiters.for('model-money').exportUsage()) {
      yield `${key},${day},${units}\n`;
    }
  }

  /** Also when the client goes away in the middle, what the model has said by then is paid. */
  private async *answer(text: string, call: ReservedCheck): AsyncGenerator<string> {
    let tokens = 0;
    try {
      for await (const token of model(text)) {
        tokens++;
        yield token;
      }
    } finally {
      await call.settle([1, tokens, priceOf(tokens)]);
    }
  }
}

function priceOf(tokens: number): number {
  return Math.ceil((tokens * PRICE) / 1_000_000);
}

/** Stands for a language model. */
async function* model(text: string): AsyncGenerator<string> {
  for (const word of `You said ${text}, and that is all that I have to say`.split(' ')) {
    await nextTurn();
    yield `${word} `;
  }
}
