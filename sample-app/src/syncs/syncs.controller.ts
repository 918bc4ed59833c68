import { Body, Controller, Get, HttpCode, Post, ServiceUnavailableException } from '@nestjs/common';
import { SyncQueue } from './sync-queue.js';

const JOBS = 3;

@Controller('syncs')
export class SyncsController {
  constructor(private readonly queue: SyncQueue) {}

  /** Adds jobs of a shop: each gets a time of its own, whatever those of other shops wait for. */
  @Post()
  @HttpCode(202)
  async add(@Body() body: { shop?: string } | undefined) {
    const shop = body?.shop ?? 'acme';
    if (!(await this.queue.add(shop, JOBS))) throw new ServiceUnavailableException('Jobs need Redis: set REDIS_URL');
    return { shop, jobs: JOBS };
  }

  /** When jobs were processed, the last ones. */
  @Get()
  list() {
    return this.queue.syncs ?? [];
  }
}
