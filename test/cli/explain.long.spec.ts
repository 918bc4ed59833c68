import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Explanation } from '../../lib/index.js';
import { RatesApp } from '../app/overrides/overrides-app.js';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { type RedisServer, startRedis } from '../support/redis/redis-servers.js';
import { freshPrefix } from '../support/limits/stores.js';
import { type ProgramRun, runHere, runProgram as runBuilt } from './run-program.js';

const SHOP = join(PACKAGE_FOLDER, 'test/cli/apps/shop.module.mjs');
const KEY = 'tenant:acme';
const redis = process.env['TEST_REDIS_URL']!;

/** Runs the command in this process. */
function explain(...args: string[]): Promise<ProgramRun> {
  return runHere(['explain', ...args]);
}

async function explained(...args: string[]): Promise<Explanation> {
  const { code, stdout, stderr } = await explain('--json', ...args);
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
  return JSON.parse(stdout) as Explanation;
}

beforeAll(() => ensureBuilt(), 120_000);

describe('explain, without the app', () => {
  const prefix = freshPrefix();
  const place = ['--redis', redis, '--prefix', prefix, '--timeout', '5s'];
  let app: RatesApp;
  beforeEach(async () => {
    app = await RatesApp.start({
      redis,
      prefix,
      define: {
        api: { algo: 'fixed-window', rate: 10, interval: '1h' },
        jobs: { algo: 'concurrency', limit: 2, ttl: '1m' },
      },
    });
  });
  afterEach(() => app.close());

  it('reads the state of a limit and its overrides', async () => {
    const { service } = app;
    await service.for('api').consume(KEY, 4);
    await service.setRate('api', { rate: 5 }, { key: 'tenant:*', by: 'eva', reason: 'abuse' });
    const command = [...place, '--limit', 'fixed-window:10/1h', '--name', 'api', '--key', KEY];
    const { at: _, ...here } = await service.explain({ limit: 'api', key: KEY });
    const { at: _at, ...there } = await explained(...command);
    const unlike = { reason: '', state: { resetAfterMs: 0 } };
    expect({ ...there, limits: [{ ...there.limits[0], state: unlike.state, rate: {} }] }).toEqual({
      ...here,
      limits: [{ ...here.limits[0], state: unlike.state, rate: {} }],
    });
    expect(there.limits[0]).toMatchObject({
      quota: 5,
      rate: { source: 'pattern', options: { rate: 5 }, override: { by: 'eva' } },
      state: { remaining: 1, source: 'redis' },
      decision: { allowed: true },
    });
    expect((await explained(...command, '--cost', '2')).outcome).toMatchObject({
      verdict: 'refused',
      refusedBy: ['api'],
    });
    const { code, stdout, stderr } = await explain(...command);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^limit 'api': allowed\n\nlimit {2}rate .*\napi {4}fixed-window:5\/1h +tenant:acme +1\/5 /);
    expect(stdout).toContain(
      "rate by the override of 'tenant:*', change 1 (eva: abuse), configured fixed-window:10/1h\n",
    );
  });

  it('of any algorithm, and of the limits of the module', async () => {
    await app.service.for('jobs').consume(KEY, 1);
    const jobs = await explained(...place, '--limit', 'concurrency:2/1m@jobs', '--key', KEY);
    expect(jobs.limits[0]).toMatchObject({ name: 'jobs', quota: 2, state: { remaining: 1 } });
    await app.service.setRate('hourly', { rate: 7 });
    const hourly = [...place, '--limit', 'sliding-window:100/1h', '--name', 'hourly', '--key', KEY];
    expect((await explained(...hourly, '--everywhere')).limits[0]).toMatchObject({
      quota: 7,
      key: { counter: expect.stringContaining('@module:hourly:') },
    });
  });

  it('takes the URL of the environment, and runs as it is built', async () => {
    const command = [
      'explain',
      '--prefix',
      prefix,
      '--limit',
      'gcra:6/1s,burst=9@free',
      '--key',
      KEY,
      '--timeout',
      '5s',
    ];
    process.env['REDIS_URL'] = redis;
    const run = await runBuilt(command).finally(() => delete process.env['REDIS_URL']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(/^limit 'free': allowed\n/);
  });
});

describe('explain, of a Redis that does not answer', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ args: ['--requirepass', 'right'] });
  });
  afterAll(() => server.stop());

  it.each([
    ['a wrong password', () => `redis://:s3cret@${server.host}:${server.port}`],
    ['nobody there', () => 'redis://:s3cret@127.0.0.1:1'],
  ])('tells the limit, and why its state is unknown: %s', async (_, url) => {
    const { code, stdout, stderr } = await explain('--redis', url(), '--limit', 'gcra:6/1s@api', '--key', KEY);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toMatch(/^limit 'api': unknown, 'api': .+\nthe store could not be read: .+\n\nlimit /);
    expect(stdout).not.toContain('s3cret');
  });
});

describe('explain, of an app', () => {
  it('tells of a route', async () => {
    const route = ['--module', `${SHOP}#ShopModule`, '--controller', 'OrdersController', '--handler', 'list'];
    const { limits, leftOut, outcome } = await explained(...route, '--key', 'ip:203.0.113.7', '--key', 'user:42');
    expect(limits.map(({ name, key }) => [name, key.identity])).toEqual([
      ['api', 'ip:203.0.113.7'],
      ['gcra:3/1s:user', 'user:42'],
    ]);
    expect(leftOut).toMatchObject([{ name: 'hourly', because: 'skipped' }]);
    expect(outcome.verdict).toBe('allowed');
    expect(await explained(...route)).toMatchObject({ outcome: { verdict: 'unknown' } });
  });

  it('tells of a limit, on the Redis of the app, and leaves an app that does not end', async () => {
    const prefix = freshPrefix();
    const app = await RatesApp.start({
      redis,
      prefix,
      define: { api: { algo: 'fixed-window', rate: 10, interval: '1h' } },
    });
    await app.service.for('api').consume(KEY, 3);
    await app.close();
    Object.assign(process.env, { SHOP_REDIS: redis, SHOP_PREFIX: prefix, SHOP_STAYS_OPEN: 'yes' });
    const args = ['explain', '--module', `${SHOP}#ShopModule`, '--name', 'api', '--key', KEY];
    const run = await runBuilt(args).finally(() => {
      for (const name of ['REDIS', 'PREFIX', 'STAYS_OPEN']) delete process.env[`SHOP_${name}`];
    });
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(/\napi {4}fixed-window:10\/1h {2}tenant:acme {2}7\/10 /);
  });

  it.each([
    ['named', '#AppModule'],
    ['the only one', ''],
  ])('is a module of CommonJS, %s', async (_, name) => {
    const file = join(PACKAGE_FOLDER, 'test/cli/apps/shop.module.cjs');
    const run = await runBuilt(['explain', '--module', `${file}${name}`, '--name', 'api', '--key', KEY]);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(/^limit 'api': allowed/);
  });
});

const ofRedis = ['--redis', redis];
const limit = ['--limit', 'gcra:6/1s@api'];

it.each<[string, string[], number, string]>([
  ['no Redis', [...limit, '--key', KEY], 2, '--redis: missing, expected a URL such as redis://localhost:6379, or'],
  [
    'a wrong URL',
    ['--redis', 'http://:s3cret@h', ...limit],
    2,
    "--redis: expected a URL such as redis://localhost:6379, received 'http://***@h'",
  ],
  ['no limit', [...ofRedis, '--key', KEY], 2, '--limit: missing, expected a limit such as gcra:60/1s'],
  ['no name', [...ofRedis, '--limit', 'gcra:6/1s', '--key', KEY], 2, '--name: missing, expected the name that'],
  [
    'a wrong limit',
    [...ofRedis, '--limit', 'gcr:6/1s@api', '--key', KEY],
    2,
    "algo: unknown algorithm 'gcr'. Did you mean 'gcra'?",
  ],
  ['a key of a limit', [...ofRedis, '--limit', 'gcra:6/1s,key=ip@api', '--key', KEY], 2, "unknown option 'key'"],
  ['no key', [...ofRedis, ...limit], 2, '--key: missing, expected an identity such as tenant:acme'],
  ['two keys', [...ofRedis, ...limit, '--key', 'a', '--key', 'b'], 2, '--key: the option is given twice'],
  [
    'a wrong cost',
    [...ofRedis, ...limit, '--key', KEY, '--cost', '1.5'],
    2,
    "--cost: expected a whole number >= 0, received '1.5'",
  ],
  [
    'a wrong time',
    [...ofRedis, ...limit, '--key', KEY, '--timeout', 'x'],
    2,
    "--timeout: expected a duration such as 500ms or 2s (units: ms, s, m, h, d, w, y), received 'x'",
  ],
  [
    'a route',
    [...ofRedis, ...limit, '--controller', 'A'],
    2,
    '--controller: the option is only for explanations of an app',
  ],
  [
    'a misspelt option',
    ['--redi=redis://:s3cret@h', ...limit, '--key', KEY],
    2,
    "unknown option '--redi'. Did you mean '--redis'?",
  ],
  [
    'an address with a password',
    ['redis://:s3cret@h', ...limit],
    2,
    "unexpected argument 'redis://***@h': expected only options",
  ],
  ['an argument', ['api'], 2, "unexpected argument 'api': expected only options"],
  ['Redis of an app', ['--module', SHOP, ...limit], 2, '--limit: the option is only for Redis without the app'],
  [
    'no file',
    ['--module', '#A', '--name', 'api', '--key', KEY],
    2,
    "--module: expected a file such as ./dist/app.module.js#AppModule, received '#A'",
  ],
  ['nothing of an app', ['--module', SHOP], 2, "--name: missing, expected the name of a limit, or '--controller'"],
  ['no method', ['--module', SHOP, '--controller', 'A'], 2, '--handler: missing, expected the name of a method'],
  ['no class', ['--module', SHOP, '--handler', 'a'], 2, '--controller: missing, expected the name of a class'],
  [
    'both',
    ['--module', SHOP, '--handler', 'a', '--name', 'b'],
    2,
    '--name: the option is only for limits, not for routes',
  ],
  [
    'an unknown limit',
    ['--module', `${SHOP}#ShopModule`, '--name', 'apii', '--key', KEY],
    2,
    "LimiterService.explain: unknown limit 'apii'. Did you mean 'api'?",
  ],
  [
    'an unknown class',
    ['--module', `${SHOP}#ShopModule`, '--controller', 'Orders', '--handler', 'list'],
    2,
    "controller: expected a class with routes (OrdersController), received 'Orders'",
  ],
  [
    'a file that is not there',
    ['--module', './no.js', '--name', 'api', '--key', KEY],
    1,
    "the module './no.js' cannot be loaded. Pass a built file such as './dist/app.module.js': ",
  ],
  [
    'a misspelt class',
    ['--module', `${SHOP}#ShopModul`, '--name', 'api', '--key', KEY],
    1,
    "exports no class 'ShopModul'. Did you mean 'ShopModule'?",
  ],
  [
    'several classes',
    ['--module', SHOP, '--name', 'api', '--key', KEY],
    1,
    "exports neither a class 'AppModule' nor a single other class, expected one of EmptyModule, ShopModule, WrongModule",
  ],
  [
    'no such class',
    ['--module', `${SHOP}#Shop`, '--name', 'api', '--key', KEY],
    1,
    "exports no class 'Shop', expected one of",
  ],
  [
    'an app without limits',
    ['--module', `${SHOP}#EmptyModule`, '--name', 'api', '--key', KEY],
    1,
    'the app has no RateLimitModule',
  ],
  [
    'an app that does not start',
    ['--module', `${SHOP}#WrongModule`, '--name', 'api', '--key', KEY],
    1,
    'rate: expected a whole number >= 1, received 0',
  ],
])('explain refuses %s', async (_, args, exitCode, message) => {
  const { code, stdout, stderr } = await explain(...args);
  expect({ code, stdout }).toEqual({ code: exitCode, stdout: '' });
  expect(stderr).toMatch(/^nestjs-sluice explain: /);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain('s3cret');
});
