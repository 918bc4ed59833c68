/** What limits add to the start of an app of 1,000 routes. */
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { table } from '../../report/format.mjs';
import { compareStarts } from './run.mjs';

const SCRIPT = fileURLToPath(new URL('start-up-process.mjs', import.meta.url));
const ROUNDS = 7;

const VARIANTS = { plain: 'without a guard', sluice: 'nestjs-sluice', throttler: '@nestjs/throttler' };

async function measure({ url, quick }) {
  const redis = new Redis(url);
  await redis.flushall();
  await redis.quit();
  const rows = await compareStarts(SCRIPT, VARIANTS, (variant) => [variant, url], quick ? 1 : ROUNDS);
  const [plain] = rows;
  const beyond = (row) => ({
    cpuMs: row.cpuMs - plain.cpuMs,
    mb: row.mb - plain.mb,
    heapMb: row.heapMb - plain.heapMb,
  });
  return rows.map((row) => ({ ...row, beyond: beyond(row) }));
}

function section(rows, { goalsOf }) {
  const [plain] = rows;
  return [
    '## Start-up',
    'An app of 1,000 routes with three limits each, from its first decorator until it has answered a request and rested for 300 ms; what is imported is imported before.',
    table(
      ['', 'until it listens', 'CPU', 'beyond the plain app', 'memory beyond it', 'heap beyond it'],
      rows.map((row) => [
        row.name,
        `${row.ms.toFixed(0)} ms`,
        `${row.cpuMs.toFixed(0)} ms`,
        ...(row === plain
          ? ['', '', '']
          : [
              `${row.beyond.cpuMs.toFixed(0)} ms`,
              `${row.beyond.mb.toFixed(1)} MB`,
              `${row.beyond.heapMb.toFixed(1)} MB`,
            ]),
      ]),
    ),
    ...goalsOf('start-up'),
  ];
}

export const startUp = { name: 'start-up', measure, section };
