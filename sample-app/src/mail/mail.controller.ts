import { Body, Controller, HttpCode, HttpException, HttpStatus, Post, Res } from '@nestjs/common';
import { MailQueue } from './mail-queue.js';

interface Mail {
  to?: string;
}

interface HeaderSink {
  setHeader(name: string, value: string): unknown;
}

@Controller('mails')
export class MailController {
  constructor(private readonly queue: MailQueue) {}

  /** The limit is asked in code, so the code also says what a refusal looks like. */
  @Post()
  @HttpCode(202)
  async send(@Body() mail: Mail | undefined, @Res({ passthrough: true }) response: HeaderSink) {
    const to = mail?.to ?? 'nobody@example.org';
    const { allowed, delayMs, retryAfterMs } = await this.queue.send(to);
    if (!allowed) {
      response.setHeader('Retry-After', String(Math.ceil(retryAfterMs / 1000)));
      throw new HttpException('The mail queue is full', HttpStatus.TOO_MANY_REQUESTS);
    }
    return { to, leavesInMs: delayMs };
  }
}
