import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { RatesApp } from '../overrides/overrides-app.js';
import { ensureBuilt } from '../support/built.js';
import { PACKAGE_FOLDER } from '../support/npm.js';
import { withOwnRedis } from '../support/own-redis.js';
import { type RedisServer, startRedis } from '../support/redis-servers.js';
import { freshPrefix } from '../support/stores.js';
import { type ProgramRun, runHere, runProgram as runBuilt } from './run-program.js';

const SHOP = `${join(PACKAGE_FOLDER, 'test/cli/apps/shop.module.mjs')}#ShopModule`;
const KEY = 'tenant:acme';
const SPEC = 'fixed-window:10/1h';

let redis: Redis;
let url = '';
withOwnRedis((client, server) => {
  redis = client;
  url = server.url;
});

let app: RatesApp;
let prefix = '';
let place: string[] = [];

beforeAll(() => ensureBuilt(), 120_000);
beforeEach(async () => {
  prefix = freshPrefix();
  place = ['--redis', url, '--prefix', prefix, '--timeout', '5s'];
  app = await RatesApp.start({
    redis: url,
    prefix,
    timeout: '5s',
    define: {
      api: { algo: 'fixed-window', rate: 10, interval: '1h' },
      login: { algo: 'gcra', rate: 5, interval: '1m' },
    },
  });
});
afterEach(() => app.close());

/** Runs a command on the limit `api`, which wants it done. */
async function done(...args: string[]): Promise<Record<string, never>> {
  const { code, stdout, stderr } = await runHere([...args, ...place, '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as Record<string, never>;
}

async function refused(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runHere(args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  return stderr;
}

const ofApi = ['--limit', SPEC];

describe('block, unblock and reset', () => {
  it('act on all instances, and report what was before and after', async () => {
    const api = app.service.for('api');
    await api.consume(KEY, 4);
    expect(await done('block', 'api', KEY, ...ofApi, '--for', '5m')).toMatchObject({
      action: 'block',
      limit: 'api',
      key: KEY,
      before: { quota: 10, mode: 'enforce', state: { remaining: 6, blockedForMs: 0 } },
      after: { state: { remaining: 0, blockedForMs: expect.closeTo(300_000, -5) } },
    });
    expect(await api.consume(KEY)).toMatchObject({ allowed: false });
    await done('unblock', 'api', KEY, ...ofApi);
    expect(await api.consume(KEY)).toMatchObject({ allowed: true, remaining: 5 });
    await done('reset', 'api', KEY, ...ofApi);
    expect(await api.peek(KEY)).toMatchObject({ remaining: 10 });
  });

  it('end refusals that instances remember', async () => {
    const api = app.service.for('api');
    await api.consume(KEY, 10);
    expect(await api.consume(KEY)).toMatchObject({ allowed: false });
    await done('reset', 'api', KEY, ...ofApi);
    expect(await api.consume(KEY)).toMatchObject({ allowed: true });
  });

  it('write a table', async () => {
    await app.service.for('api').consume(KEY, 4);
    const run = await runBuilt(['block', 'api', KEY, ...ofApi, ...place]);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(
      /^limit 'api', key 'tenant:acme': blocked for 10m\n\n {8}left +resets in +blocked for\n/,
    );
    expect(run.stdout).toMatch(/\nbefore +6\/10 +\S+ min +-\nafter +0\/10 .*\d+ (?:min|s)\n$/);
  });

  it('of a limit of the module, and say that a shadow refuses nobody', async () => {
    await app.service.setMode('hourly', 'shadow');
    const args = ['--limit', 'sliding-window:100/1h', '--everywhere', '--force'];
    const { stdout } = await runHere(['block', 'hourly', 'ip:203.0.113.7', ...args, ...place]);
    expect(stdout).toContain('\nthe limit is in shadow mode, so it refuses nobody\n');
    expect(await app.service.explain({ limit: 'hourly', key: 'ip:203.0.113.7' })).toMatchObject({
      limits: [{ state: { blockedForMs: expect.closeTo(600_000, -5) } }],
    });
  });

  it('leave who and why in the log that the console shows', async () => {
    await app.service.for('api').consume(KEY);
    await done('block', 'api', KEY, ...ofApi, '--by', 'eva', '--reason', 'scraping', '--for', '1h');
    const entries = await redis.lrange(`${prefix}:{console}:log`, 0, -1);
    expect(entries.map((entry) => JSON.parse(entry) as unknown)).toEqual([
      expect.objectContaining({ action: 'block', limit: 'api', by: 'eva', reason: 'scraping', after: '1h' }),
    ]);
    expect(entries[0]).not.toContain(KEY);
  });

  it('are done by the module of an app', async () => {
    await app.service.for('api').consume(KEY, 3);
    Object.assign(process.env, { SHOP_REDIS: url, SHOP_PREFIX: prefix });
    try {
      const run = await runBuilt(['reset', 'api', KEY, '--module', SHOP]);
      expect(run).toMatchObject({ code: 0, stderr: '' });
      expect(await app.service.for('api').peek(KEY)).toMatchObject({ remaining: 10 });
      expect(await runBuilt(['reset', 'apii', KEY, '--module', SHOP])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("got the name 'apii' (did you mean 'api'?), wants a limit of"),
      });
    } finally {
      delete process.env['SHOP_REDIS'];
      delete process.env['SHOP_PREFIX'];
    }
  });

  it('refuse what would change nothing', async () => {
    await app.service.for('api').consume(KEY);
    expect(await refused('block', 'apii', KEY, ...ofApi, ...place)).toContain(
      `Redis has no counter of a limit 'apii' (did you mean 'api'?) under the prefix '${prefix}', so this might change nothing; wants one of 'api'`,
    );
    expect(await refused('block', 'api', 'tenant:new', '--limit', 'gcra:10/1h', ...place)).toContain(
      "instances count 'api' by fixed-window, not by gcra, so this would change nothing",
    );
    expect(await refused('block', 'api', KEY, ...ofApi, '--redis', url, '--prefix', 'other')).toContain(
      "under the prefix 'other', so this might change nothing; wants the app's 'prefix'",
    );
    expect(await refused('unblock', 'api', KEY, ...ofApi, ...place)).toContain(
      "the key 'tenant:acme' of 'api' is not blocked, so there is nothing to unblock",
    );
    expect(await refused('reset', 'api', 'tenant:new', ...ofApi, ...place)).toContain(
      "the key 'tenant:new' of 'api' has used nothing and is not blocked",
    );
    expect(await redis.keys(`${prefix}:{tenant:new}*`)).toEqual([]);
    await done('block', 'api', 'tenant:new', ...ofApi);
    await done('block', 'new', KEY, ...ofApi, '--force');
  });
});

describe('commands of a Redis that does not answer', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ args: ['--requirepass', 'right'] });
  });
  afterAll(() => server.stop());

  it.each([
    ['a wrong password', () => `redis://:s3cret@${server.host}:${server.port}`],
    ['nobody there', () => 'redis://:s3cret@127.0.0.1:1'],
  ])('change nothing, and say so: %s', async (_, wrong) => {
    const message = await refused('block', 'api', KEY, ...ofApi, '--redis', wrong());
    expect(message).toContain('the state cannot be read, so nothing was changed: ');
    expect(message).not.toContain('s3cret');
  });
});

it.each<[string, string[], string]>([
  ['no limit', ['block'], 'an argument is missing, wants the name of a limit'],
  ['no key', ['block', 'api'], 'an argument is missing, wants a key such as tenant:acme'],
  [
    'an argument too many',
    ['block', 'api', KEY, 'redis://:s3cret@h'],
    "got the argument 'redis://***@h', wants no more",
  ],
  ['a wrong time', ['block', 'api', KEY, '--for', 'soon'], "option '--for' is 'soon', wants a duration"],
  ['a time of no use', ['reset', 'api', KEY, '--for', '1m'], "option '--for' is only for 'block'"],
  [
    'no definition',
    ['block', 'api', KEY, '--redis', 'redis://h'],
    "option '--limit' is missing, wants a limit such as",
  ],
  [
    'a wrong address',
    ['block', 'api', KEY, '--redis', 'http://:s3cret@h'],
    "option '--redis' is 'http://***@h', wants",
  ],
  ['a misspelt option', ['reset', 'api', KEY, '--foce'], "option '--foce' is unknown (did you mean '--force'?)"],
  ['a wrong cause', ['block', 'api', KEY, '--by', 'a\nb'], "option 'by' is 'a\\nb', wants a string of 1 to 200"],
])('a command refuses %s', async (_, args, message) => {
  const { code, stdout, stderr } = await runHere([...args, ...(args.includes('--redis') ? [] : [...place, ...ofApi])]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
  expect(stderr).not.toContain('s3cret');
});

it.each(['block', 'unblock', 'reset'])('%s tells its options', async (command) => {
  const run: ProgramRun = await runHere([command, '--help']);
  expect(run).toMatchObject({ code: 0, stderr: '' });
  expect(run.stdout).toMatch(new RegExp(`^Usage: nestjs-sluice ${command} `));
});
