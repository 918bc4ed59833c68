/** How much later an instance starts that finds many overrides, or many entries of lists, on Redis. */
import { fileURLToPath } from 'node:url';
import { startApp } from '../../contenders/ours.mjs';
import { table, whole } from '../../report/format.mjs';
import { looking } from '../../servers.mjs';
import { compareStarts } from './run.mjs';
import { optionsOf } from './second-instance-options.mjs';

const SCRIPT = fileURLToPath(new URL('second-instance-process.mjs', import.meta.url));
const ROUNDS = 5;
const MANY = 100_000;
const IN_FLIGHT = 256;

const VARIANTS = {
  none: 'nothing',
  overrides: 'overrides',
  lists: 'denied addresses',
};

const address = (index) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;

const CHANGES = {
  overrides: (limiters, index) => limiters.setRate('api', { rate: 50 }, { key: `user:${index}` }),
  lists: (limiters, index) => limiters.deny({ ip: address(index) }),
};

async function fill(url, variant, count) {
  const { limiters, close } = await startApp(optionsOf(url, variant));
  let next = 0;
  const lane = async () => {
    while (next < count) await CHANGES[variant](limiters, next++);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  await close();
}

function measure({ url, quick }) {
  return looking(url, async (redis) => {
    await redis.flushall();
    const count = quick ? MANY / 20 : MANY;
    for (const variant of ['overrides', 'lists']) await fill(url, variant, count);
    const rows = await compareStarts(SCRIPT, VARIANTS, (variant) => [url, variant], quick ? 1 : ROUNDS);
    await redis.flushall();
    return rows.map((row, index) => (index === 0 ? row : { ...row, name: `${whole(count)} ${row.name}` }));
  });
}

function section(rows, { goalsOf }) {
  const [first] = rows;
  return [
    '## A second instance',
    'A new instance reads what operators have changed; from its start to its first decision.',
    table(
      ['on Redis', 'start', 'later', 'CPU', 'memory'],
      rows.map(({ name, ms, cpuMs, mb }) => [
        name,
        `${ms.toFixed(0)} ms`,
        `${(ms - first.ms).toFixed(0)} ms`,
        `${cpuMs.toFixed(0)} ms`,
        `${mb.toFixed(1)} MB`,
      ]),
    ),
    ...goalsOf('second-instance'),
  ];
}

export const secondInstance = { name: 'second-instance', measure, section };
