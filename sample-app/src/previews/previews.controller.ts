import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Get } from '@nestjs/common';
import { RateLimit } from 'nestjs-sluice';

@Controller('previews')
export class PreviewsController {
  /** How many at once this instance can make, the limit learns from how long they take. It begins with 4, the last for critical ones. */
  @Get()
  @RateLimit({ name: 'previews', algo: 'adaptive', scope: 'instance', initial: 4 })
  async make() {
    await sleep(500);
    return { file: 'preview.png' };
  }
}
