/** What importing costs an app that has imported Nest and ioredis. */
import { fileURLToPath } from 'node:url';
import { table } from '../../report/format.mjs';
import { compareStarts } from './run.mjs';

const SCRIPT = fileURLToPath(new URL('import-process.mjs', import.meta.url));
const ROUNDS = 9;

const VARIANTS = {
  ours: 'nestjs-sluice',
  required: 'nestjs-sluice, by require',
  throttler: '@nestjs/throttler with its Redis storage',
  flexible: 'rate-limiter-flexible',
};
const ARGS = {
  ours: ['import', 'nestjs-sluice'],
  required: ['require', 'nestjs-sluice'],
  throttler: ['import', '@nestjs/throttler', '@nest-lab/throttler-storage-redis'],
  flexible: ['import', 'rate-limiter-flexible'],
};

const measure = ({ quick }) => compareStarts(SCRIPT, VARIANTS, (variant) => ARGS[variant], quick ? 1 : ROUNDS);

function section(rows, { goalsOf }) {
  return [
    '## Import',
    'By a process that has imported Nest and ioredis already.',
    table(
      ['', 'CPU', 'memory of the process', 'its heap'],
      rows.map(({ name, cpuMs, mb, heapMb }) => [
        name,
        `${cpuMs.toFixed(0)} ms`,
        `${mb.toFixed(1)} MB`,
        `${heapMb.toFixed(1)} MB`,
      ]),
    ),
    ...goalsOf('import'),
  ];
}

export const imports = { name: 'import', measure, section };
