import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { LimitDefinition } from '../../lib/index.js';
import { RatesApp } from '../app/overrides/overrides-app.js';
import { ensureBuilt } from '../support/processes/built.js';
import { withOwnRedis } from '../support/redis/own-redis.js';
import { RedisShell } from '../support/redis/redis-shell.js';
import { freshPrefix } from '../support/limits/stores.js';
import { runHere } from './run-program.js';
import { scripts } from '../support/redis/scripts.js';

const SHA = createHash('sha1').update(scripts.decisions).digest('hex');

let redis: Redis;
let shell: RedisShell;
let url = '';
withOwnRedis((client, server) => {
  redis = client;
  url = server.url;
});
beforeAll(async () => {
  await ensureBuilt();
  shell = await RedisShell.open(Number(new URL(url).port));
}, 120_000);
afterAll(() => shell?.close());

let app: RatesApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runHere(['call', ...args]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** The numbers that redis-cli shows, which are those behind the hash of the script. */
const numbers = (output: string): number[] => output.trim().split('\n').slice(1).map(Number);

const LIMITS: [spec: string, definition: LimitDefinition][] = [
  ['gcra:5/1h,burst=4', { algo: 'gcra', rate: 5, interval: '1h', burst: 4 }],
  ['token-bucket:4/1h', { algo: 'token-bucket', rate: 4, interval: '1h' }],
  ['fixed-window:4/1h', { algo: 'fixed-window', rate: 4, interval: '1h' }],
  ['sliding-window:4/1h', { algo: 'sliding-window', rate: 4, interval: '1h' }],
  ['sliding-log:4/1h,blockFor=1m', { algo: 'sliding-log', rate: 4, interval: '1h', blockFor: '1m' }],
  ['calendar-window:4/year', { algo: 'calendar-window', rate: 4, period: 'year' }],
  ['budget:4/year', { algo: 'budget', limit: 4, period: 'year' }],
];

describe('nestjs-sluice call', () => {
  it.each(LIMITS)('decides as an app does, on the same counter: %s', async (spec, definition) => {
    const prefix = freshPrefix();
    app = await RatesApp.start({ redis: url, prefix, refusalCache: false, define: { api: definition } });
    const api = app.service.for('api');
    await api.consume('tenant:acme');
    const call = (...more: string[]) => printed('api', 'tenant:acme', '--limit', spec, '--prefix', prefix, ...more);
    const [reset, left] = numbers(await shell.run(await call('--cost', '2')));
    expect([reset! % 4, left]).toEqual([1, 1]);
    expect(await api.peek('tenant:acme')).toMatchObject({ allowed: true, remaining: 1 });
    const [looked, still] = numbers(await shell.run(await call('--peek')));
    expect([looked! % 4, still]).toEqual([1, 1]);
    const [refused, rest, wait] = numbers(await shell.run(await call('--cost', '2')));
    expect([refused! % 4, rest]).toEqual([0, spec.includes('blockFor') ? 0 : 1]);
    const { retryAfterMs } = await api.peek('tenant:acme', 2);
    expect(Math.abs(wait! - retryAfterMs)).toBeLessThan(60_000);
  });

  it('holds what leaves later, and says how long', async () => {
    const text = await printed('mail', 'user:1', '--limit', 'leaky-bucket:1/1h,queue=5', '--prefix', freshPrefix());
    expect(text).toContain('#   2  if it is allowed, too.');
    expect(numbers(await shell.run(text)).length).toBe(4);
    const [later, , delay] = numbers(await shell.run(text));
    expect([later! % 4, Math.round(delay! / 60_000)]).toEqual([2, 60]);
  });

  it('asks for the limits of the module under their own keys, and hashes a long key', async () => {
    const text = await printed('hourly', 'a'.repeat(70), '--limit', 'gcra:60/1s', '--everywhere');
    expect(text).toMatch(/ 1 'sluice:\{#[\w-]{43}\}:@module:hourly:gd' /);
  });

  it('prints lines for a shell, and explains the reply', async () => {
    const text = await printed('api', 'tenant:acme', '--limit', 'gcra:60/1s');
    expect(text.split('\n').slice(0, 2)).toEqual([
      '# Loads the script into Redis, which replies with its hash.',
      'npx nestjs-sluice call --script | redis-cli -x SCRIPT LOAD',
    ]);
    expect(text).toContain(`redis-cli EVALSHA ${SHA} 1 'sluice:{tenant:acme}::api:gd' '[0,0,1000,1,"gcra",0,60,`);
    expect(text).toContain('#   0  if it is refused. The third number is the wait');
    expect(text).not.toContain('#   2');
    expect(text).not.toContain('anew');
    expect(await printed('api', 'tenant:acme', '--limit', 'calendar-window:60/day')).toContain(
      '# If it begins with -1, another window has begun: print these lines again.\n',
    );
    expect(await printed('api', 'tenant:acme', '--limit', 'sliding-log:5/15m,blockFor=1m/1h')).toContain('offences');
  });

  it('quotes for the shell what a name holds', async () => {
    const text = await printed("it's", "o'neil", '--limit', 'gcra:60/1s', '--prefix', freshPrefix());
    expect(numbers(await shell.run(text))).toEqual([expect.any(Number), 59]);
  });

  it('prints the script alone', async () => {
    expect(await printed('--script')).toBe(scripts.decisions);
    expect(await redis.script('LOAD', await printed('--script'))).toBe(SHA);
  });

  it.each([
    ['no limit', ['api', 'user:1'], '--limit: missing, expected a limit such as gcra:60/1s'],
    ['no key', ['api', '--limit', 'gcra:1/1s'], 'argument: missing, expected a key such as tenant:acme'],
    [
      'a wrong cost',
      ['api', 'user:1', '--limit', 'gcra:1/1s', '--cost', '1.5'],
      "--cost: expected a whole number of units, received '1.5'",
    ],
    [
      'a wrong prefix',
      ['api', 'user:1', '--limit', 'gcra:1/1s', '--prefix', '{a}'],
      "--prefix: expected a text without braces, received '{a}'",
    ],
    [
      'what is held',
      ['api', 'user:1', '--limit', 'concurrency:1/1m'],
      "--limit 'concurrency:1/1m': 'concurrency' cannot be evaluated by one command, since each call needs its own number. Use another algorithm",
    ],
    [
      'a limit over regions',
      ['api', 'user:1', '--limit', 'gcra:1/1s,scope=world'],
      "--limit 'gcra:1/1s,scope=world'.scope: expected a limit that counts in one region, received 'world': units of other regions come from their home",
    ],
    [
      'a limit that each instance counts',
      ['api', 'user:1', '--limit', 'gcra:1/1s,scope=instance'],
      "--limit 'gcra:1/1s,scope=instance'.scope: expected 'world', or to be left out: others count in their region, received 'instance'",
    ],
    [
      'a limit beside the script',
      ['--script', '--limit', 'gcra:1/1s'],
      "--limit: the option is only for a limit, not together with '--script'",
    ],
    ['a key beside the script', ['api', '--script'], "unexpected argument 'api': expected only options"],
    ['a misspelt option', ['api', 'user:1', '--limt', 'gcra:1/1s'], "unknown option '--limt'. Did you mean '--limit'?"],
  ])('refuses %s', async (_, args, message) => {
    const { code, stdout, stderr } = await runHere(['call', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`nestjs-sluice call: ${message}`);
  });
});
