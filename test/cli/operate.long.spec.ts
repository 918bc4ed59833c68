import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { RatesApp } from '../app/overrides/overrides-app.js';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { withOwnRedis } from '../support/redis/own-redis.js';
import { type RedisServer, startRedis } from '../support/redis/redis-servers.js';
import { freshPrefix } from '../support/limits/stores.js';
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
    expect(run.stdout).toMatch(/\nbefore +6\/10 +(?:1 h|\d+ min(?: \d+ s)?) +-\nafter +0\/10 .*\d+ (?:min|s)\n$/);
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
        stderr: expect.stringContaining("unknown limit 'apii'. Did you mean 'api'?"),
      });
    } finally {
      delete process.env['SHOP_REDIS'];
      delete process.env['SHOP_PREFIX'];
    }
  });

  it('say where a limit is counted, if not in the place that they look at', async () => {
    await redis.set(`${prefix}:{a@b.c}:POST /login:signin:sw`, '1');
    await redis.set(`${prefix}:{ip:203.0.113.7}:@module:hourly:sw`, '1');
    await app.service.for('api').consume(KEY);
    expect(await refused('block', 'signin', 'a@b.c', ...place, '--limit', 'sliding-window:5/1m')).toContain(
      "instances count 'signin' on POST /login, with counters of that route or class, so this might change nothing. To change " +
        "it by its name, move it to 'define' and use its name in @RateLimit. Use '--force' if you mean a limit",
    );
    const noted = async (...args: string[]) => {
      const { code, stdout, stderr } = await runHere(['explain', '--key', 'a@b.c', ...place, ...args]);
      expect([code, stdout]).toEqual([0, expect.stringContaining(': allowed')]);
      return stderr;
    };
    const none = 'note: no counter of this limit exists now, but instances count';
    expect(await noted('--name', 'signin', '--limit', 'sliding-window:5/1m')).toBe(
      `${none} 'signin' on POST /login, with counters of that route or class: to explain that one, use '--module' with ` +
        "'--controller' and '--handler'\n",
    );
    expect(await noted('--name', 'hourly', '--limit', 'sliding-window:100/1h')).toBe(
      `${none} 'hourly' by the module's 'limits' (with '--everywhere')\n`,
    );
    expect(await noted('--name', 'api', '--everywhere', ...ofApi)).toBe(
      `${none} 'api' by 'define' (without '--everywhere')\n`,
    );
    expect(await noted('--name', 'api', '--limit', 'gcra:10/1h')).toBe(`${none} 'api' by fixed-window, not by gcra\n`);
    await redis.set(`${prefix}:{k}::tried:swc`, '1');
    expect(await noted('--name', 'tried', '--limit', 'gcra:10/1h')).toBe('');
  });

  it('say on which route of an app a limit is declared', async () => {
    const onRoute = "limit 'gcra:3/1s:user' is declared on OrdersController.list";
    const key = ['--key', 'eva', '--module', SHOP];
    expect(await runBuilt(['explain', '--name', 'gcra:3/1s:user', ...key])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        `${onRoute}: use '--controller OrdersController --handler list' in place of '--name'`,
      ),
    });
    Object.assign(process.env, { SHOP_REDIS: url, SHOP_PREFIX: prefix });
    try {
      expect(await runBuilt(['reset', 'gcra:3/1s:user', 'eva', '--module', SHOP])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(
          `${onRoute}, and only limits of 'define', 'forFeature' and 'limits' can be changed`,
        ),
      });
    } finally {
      delete process.env['SHOP_REDIS'];
      delete process.env['SHOP_PREFIX'];
    }
  });

  it('refuse what would change nothing', async () => {
    await app.service.for('api').consume(KEY);
    expect(await refused('block', 'apii', KEY, ...ofApi, ...place)).toContain(
      `Redis has no counter of a limit 'apii' under the prefix '${prefix}', so this might change nothing. Did you mean 'api'?`,
    );
    expect(await runHere(['block', 'api', KEY, ...place])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--limit: missing, expected a limit such as'),
    });
    expect(await refused('block', 'burst', KEY, '--limit', 'gcra:20/1s', ...place)).toContain(
      "Expected one of 'api'. Use '--force' if the name is right: a counter disappears when its units are back",
    );
    expect(await refused('block', 'api', 'tenant:new', '--limit', 'gcra:10/1h', ...place)).toContain(
      "instances count 'api' by fixed-window, not by gcra, so this would change nothing",
    );
    expect(await refused('block', 'api', KEY, ...ofApi, '--redis', url, '--prefix', 'other')).toContain(
      "under the prefix 'other', so this might change nothing. Check the app's 'prefix'",
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

describe('deny, allow and unlist', () => {
  it('put a client on a list, and report the entry before and after', async () => {
    const cause = ['--by', 'eva', '--reason', 'scraping'];
    expect(await done('deny', '203.0.113.0/24', ...cause, '--for', '1h')).toMatchObject({
      action: 'deny',
      entry: { ip: '203.0.113.0/24' },
      before: null,
      after: { list: 'deny', version: 1, by: 'eva', reason: 'scraping', expiresAt: expect.any(Number) },
    });
    expect((await app.service.listEntries({ ip: '203.0.113.7' })).entries).toMatchObject([{ list: 'deny', by: 'eva' }]);
    expect(await done('allow', '203.0.113.0/24')).toMatchObject({ before: { list: 'deny' }, after: { list: 'allow' } });
    const { stdout } = await runHere(['unlist', '203.0.113.0/24', ...place]);
    expect(stdout).toBe(
      '203.0.113.0/24, all limits\n\nbefore  allow, change 2\nafter   in no list that was changed at run time\n',
    );
    expect((await app.service.listEntries({ ip: '203.0.113.7' })).entries).toEqual([]);
  });

  it.each([
    ['an identity', 'tenant:acme', { identity: 'tenant:acme' }],
    ['a pattern', 'trial:*', { pattern: 'trial:*' }],
    ['an address of another spelling', '2001:DB8::1', { ip: '2001:db8::1' }],
  ])('take %s, for one limit', async (_, who, entry) => {
    await app.service.for('api').consume(KEY);
    expect(await done('deny', who, '--name', 'api')).toMatchObject({ entry, limit: 'api', after: { list: 'deny' } });
    expect((await app.service.listEntries({ limit: 'api' })).entries).toMatchObject([{ entry, list: 'deny' }]);
  });

  it('are built as the source says', async () => {
    const run = await runBuilt(['deny', '198.51.100.7', ...place]);
    expect(run).toEqual({ code: 0, stderr: '', stdout: expect.stringContaining('\nafter   deny, change 1\n') });
  });

  it('refuse what would change nothing', async () => {
    await app.service.for('api').consume(KEY);
    expect(await refused('deny', '198.51.100.7', '--redis', url, '--prefix', 'nobodys')).toContain(
      "no instance uses the prefix 'nobodys', so this would change nothing",
    );
    expect(await refused('deny', KEY, '--name', 'apii', ...place)).toContain("Redis has no counter of a limit 'apii'");
    expect(await refused('unlist', KEY, ...place)).toContain(
      "'tenant:acme' was added to no list for all limits, so there is nothing to remove",
    );
    expect(await redis.keys('nobodys*')).toEqual([]);
  });
});

describe('rates', () => {
  it('are set, for all or for some, and cleared', async () => {
    await app.service.for('api').consume(KEY);
    expect(await done('rates', 'set', 'api', 'rate=5', ...ofApi, '--by', 'eva', '--for', '1h')).toMatchObject({
      limit: 'api',
      before: { rate: { options: { rate: 10 }, source: 'configured' }, mode: { mode: 'enforce' } },
      after: { rate: { options: { rate: 5 }, source: 'limit', override: { by: 'eva', version: 1 } } },
    });
    expect(await app.quota('api', KEY)).toBe(5);
    await done('rates', 'set', 'api', 'rate=7', 'interval=2h', ...ofApi, '--key', 'tenant:*', '--inherit', 'reset');
    expect(await app.service.getRate('api', { key: KEY })).toMatchObject({
      source: 'pattern',
      options: { rate: 7, interval: '2h' },
      override: { inherit: 'reset' },
    });
    await done('rates', 'mode', 'api', 'shadow', ...ofApi, '--reason', 'incident');
    expect(await app.service.getMode('api')).toMatchObject({ mode: 'shadow', override: { reason: 'incident' } });
    const { stdout } = await runHere(['rates', 'clear', 'api', ...ofApi, ...place]);
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ["limit 'api', all keys"],
      [''],
      ['', 'rate', 'by', 'mode', 'by'],
      ['before', 'fixed-window rate=5 interval=1h', 'change 1 (eva)', 'shadow', 'change 3 (incident)'],
      ['after', 'fixed-window rate=10 interval=1h', 'the configuration', 'enforce', 'the configuration'],
      [''],
    ]);
    expect(await app.service.getRate('api')).toMatchObject({ source: 'configured' });
  });

  it('are listed with modes and lists, by the built program, too', async () => {
    expect(await runHere(['rates', ...place])).toEqual({
      code: 0,
      stderr: '',
      stdout: 'no rate, mode or list is changed\n',
    });
    await app.service.setRate('api', { rate: 5 }, { by: 'eva', reason: 'abuse' });
    await app.service.setMode('api', 'off', { key: KEY });
    await app.service.deny({ ip: '10.0.0.0/8' });
    await app.service.setRate('login', { rate: 1 });
    await app.service.clearRate('login');
    expect(await runBuilt(['rates', 'list', ...place])).toEqual({
      code: 0,
      stderr: '',
      stdout: [
        'limit       key          change',
        'all limits  10.0.0.0/8   deny, change 3',
        'api         all keys     rate=5, change 1 (eva: abuse)',
        'api         tenant:acme  off, change 2',
        '',
      ].join('\n'),
    });
    expect(await done('rates')).toEqual({
      changes: [
        { kind: 'list', entry: { ip: '10.0.0.0/8' }, list: 'deny', version: 3 },
        { kind: 'rate', limit: 'api', patch: { rate: 5 }, inherit: 'keep', version: 1, by: 'eva', reason: 'abuse' },
        { kind: 'mode', limit: 'api', key: KEY, mode: 'off', version: 2 },
      ],
    });
  });

  it('refuse what would change nothing', async () => {
    await app.service.for('api').consume(KEY);
    expect(await refused('rates', 'set', 'apii', 'rate=5', ...ofApi, ...place)).toContain(
      "Redis has no counter of a limit 'apii'",
    );
    expect(await refused('rates', 'clear', 'api', ...ofApi, ...place)).toContain(
      "'api' has no change, so there is nothing to clear",
    );
    expect(await redis.exists(`${prefix}:rates`)).toBe(0);
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
    expect(message).toMatch(
      /^nestjs-sluice block: Redis at 127\.0\.0\.1:\d+ is not connected: (?:WRONGPASS|connect ECONNREFUSED)/,
    );
    expect(message).not.toContain('s3cret');
    for (const command of [['deny', KEY], ['rates', 'set', 'api', 'rate=5', ...ofApi], ['rates']]) {
      expect(await refused(...command, '--redis', wrong())).not.toContain('s3cret');
    }
  });
});

it.each<[string, string[], string]>([
  ['no limit', ['block'], 'argument: missing, expected the name of a limit'],
  ['no key', ['block', 'api'], 'argument: missing, expected a key such as tenant:acme'],
  [
    'an argument too many',
    ['block', 'api', KEY, 'redis://:s3cret@h'],
    "unexpected argument 'redis://***@h': expected no more",
  ],
  [
    'a wrong time',
    ['block', 'api', KEY, '--for', 'soon'],
    "--for: expected a duration such as '10m', '1h' (units: ms, s, m, h, d, w, y), at most 1 year, received 'soon'",
  ],
  ['a time of no use', ['reset', 'api', KEY, '--for', '1m'], "--for: the option is only for 'block'"],
  ['a wrong address', ['block', 'api', KEY, '--redis', 'http://:s3cret@h'], "received 'http://***@h'"],
  ['a misspelt option', ['reset', 'api', KEY, '--foce'], "unknown option '--foce'. Did you mean '--force'?"],
  [
    'a wrong cause',
    ['block', 'api', KEY, '--by', 'a\nb'],
    "nestjs-sluice block: --by: expected a string of 1 to 200 characters on one line, without control characters and marks of direction, received 'a\\nb'",
  ],
  ['an unknown part', ['rates', 'sett', 'api'], "unknown argument 'sett'. Did you mean 'set'?"],
  ['no rate', ['rates', 'set', 'api'], 'argument: missing, expected an option and its value, such as rate=50'],
  [
    'what is no rate',
    ['rates', 'set', 'api', '50', '--force'],
    "unexpected argument '50': expected an option and its value, such as rate=50",
  ],
  ['an unknown rate', ['rates', 'set', 'api', 'raet=5', '--force'], "unknown option 'raet'. Did you mean 'rate'?"],
  [
    'a wrong mode',
    ['rates', 'mode', 'api', 'of', '--force'],
    "mode: expected one of enforce, shadow, off, received 'of'",
  ],
  [
    'a wrong network',
    ['deny', '10.0.0.1/8', '--redis', 'redis://h'],
    "nestjs-sluice deny: <who>: expected the network '10.0.0.0/8' or the address '10.0.0.1', received '10.0.0.1/8'",
  ],
  [
    'a definition for lists',
    ['deny', KEY],
    "--limit: the option is only for other commands: here, name the limit with '--name'",
  ],
])('a command refuses %s', async (_, args, message) => {
  const { code, stdout, stderr } = await runHere([...args, ...(args.includes('--redis') ? [] : [...place, ...ofApi])]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
  expect(stderr).not.toContain('s3cret');
});

it.each(['block', 'unblock', 'reset', 'deny', 'allow', 'unlist', 'rates'])('%s tells its options', async (command) => {
  const run: ProgramRun = await runHere([command, '--help']);
  expect(run).toMatchObject({ code: 0, stderr: '' });
  expect(run.stdout).toMatch(new RegExp(`^Usage: nestjs-sluice ${command} `));
});
