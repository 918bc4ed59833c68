import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, DefaultValuePipe, type ExecutionContext, Get, ParseIntPipe, Query } from '@nestjs/common';
import { RateLimit } from 'nestjs-sluice';

const ROWS_PER_UNIT = 100;

/** A unit for every 100 rows begun. Guards run before pipes, so this reads the query as it came. */
function rowsCost(context: ExecutionContext): number {
  const { rows } = context.switchToHttp().getRequest<{ query: { rows?: unknown } }>().query;
  const units = Math.ceil(Number(rows) / ROWS_PER_UNIT);
  return Number.isSafeInteger(units) && units >= 1 ? units : 1;
}

@Controller('exports')
export class ExportsController {
  /** 10,000 rows at once after a pause, then 10,000 a minute. A larger export can never fit: its 429 has no Retry-After. */
  @Get()
  @RateLimit({ name: 'export-rows', algo: 'token-bucket', rate: 100, interval: '1m', cost: rowsCost })
  export(@Query('rows', new DefaultValuePipe(100), ParseIntPipe) rows: number) {
    return { rows, file: `export-${rows}-rows.csv` };
  }

  /** The archive is slow to write: two at once for everyone together, and a third is refused until one is done. */
  @Get('archive')
  @RateLimit({ name: 'archives', algo: 'concurrency', limit: 2, ttl: '10s', key: 'global' })
  async archive() {
    await sleep(2000);
    return { file: 'archive.zip' };
  }
}
