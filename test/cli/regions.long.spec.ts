import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Explanation } from '../../lib/index.js';
import { RatesApp } from '../app/overrides/overrides-app.js';
import { type AppInRegion, World } from '../storage/features/regions/world.js';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { freshPrefix } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { runHere } from './run-program.js';

const KEY = 'tenant:acme';
const PLAN = 'fixed-window:10/1h';
const BURST = 'fixed-window:5/1h';

const WORLD_PLAN = `${PLAN},scope=world`;

/** The rights that the guide gives a user, for a prefix. */
function rightsOf(prefix: string): string[] {
  const guide = readFileSync(join(PACKAGE_FOLDER, 'docs/guides/redis-users.md'), 'utf8');
  return /ACL SETUSER \S+ ([^`]+)/.exec(guide)![1]!.trim().replaceAll('sluice:', `${prefix}:`).split(/\s+/);
}

/** The URL of a server, for a new user with these rights. */
async function userAt(url: string, rights: readonly string[]): Promise<string> {
  const redis = new Redis(url);
  const user = `user-${freshPrefix()}`;
  await redis.call('ACL', 'SETUSER', user, ...rights);
  redis.disconnect();
  return url.replace('redis://', `redis://${user}:password@`);
}

/** Which servers the program is given: that of the region, of the home, or both. */
type Place = 'region' | 'home' | 'both';

describe('the terminal over regions', () => {
  let world: World;
  let prefix = '';
  let eu: AppInRegion;

  beforeAll(async () => {
    await ensureBuilt();
    world = await World.start();
  }, 300_000);
  afterAll(() => world.stop());

  beforeEach(async () => {
    prefix = freshPrefix();
    eu = await world.app('eu', {
      limits: {
        prefix,
        define: {
          plan: { algo: 'fixed-window', rate: 10, interval: '1h', scope: 'world' },
          burst: { algo: 'fixed-window', rate: 5, interval: '1h' },
        },
      },
    });
    await eu.limiters.for('plan').consume(KEY);
    await eu.limiters.for('burst').consume(KEY);
  });
  afterEach(() => world.closeApps());

  function at(place: Place, ...args: string[]) {
    const { url: home } = world.home;
    const { url: region } = world.serverOf('eu');
    const servers = { region: [region], home: [home], both: [region, '--home', home] }[place];
    return runHere([...args, '--prefix', prefix, '--timeout', '5s', '--redis', ...servers]);
  }

  async function refused(place: Place, ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await at(place, ...args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    return stderr;
  }

  async function done(place: Place, ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await at(place, ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  }

  const ofKey = (limit: string, ...more: string[]) => ['explain', '--name', limit, '--key', KEY, ...more];
  const ofPlan = ofKey('plan', '--limit', WORLD_PLAN);

  it.each(['region', 'home', 'both'] as const)(
    'asks for the scope of limits over regions, with the Redis of %s',
    async (place) => {
      const message = "limit 'plan' counts over several regions. Add 'scope=world' to '--limit', and '--home'";
      const commands = [['block'], ['unblock'], ['reset'], ['block', '--force']].map((each) => [...each, 'plan', KEY]);
      for (const command of [...commands, ofKey('plan')]) {
        expect(await refused(place, ...command, '--limit', PLAN)).toContain(message);
      }
    },
  );

  it('asks for the home of limits over regions on the Redis of a region', async () => {
    const message = "limit 'plan' counts over several regions. Set '--home' to the Redis that counts for all of them";
    for (const command of [['block', 'plan', KEY, '--force'], ['reset', 'plan', KEY], ofKey('plan')]) {
      expect(await refused('region', ...command, '--limit', WORLD_PLAN)).toContain(message);
    }
  });

  it.each(['home', 'both'] as const)('reads and blocks limits over regions at the home, given %s', async (place) => {
    const limit = ['--limit', WORLD_PLAN];
    expect(await done(place, ...ofKey('plan', ...limit))).toMatch(/\d\/10 .* allows[^]*held by regions: eu/);
    expect(await done(place, 'block', 'plan', KEY, ...limit)).toContain('blocked for 10m');
    expect(await done(place, ...ofKey('plan', ...limit))).toContain('refuses');
    await until(async () => !(await eu.limiters.for('plan').consume(KEY)).allowed);
    await done(place, 'unblock', 'plan', KEY, ...limit);
    expect(await done(place, 'reset', 'plan', KEY, ...limit)).toMatch(/after +10\/10/);
    expect(await eu.limiters.for('plan').regions(KEY)).toMatchObject([{ region: 'eu' }]);
  });

  it.each(['home', 'both'] as const)('knows the names of limits over regions, given %s', async (place) => {
    const limit = ['--limit', WORLD_PLAN];
    expect(await done(place, 'block', 'plan', 'tenant:new', ...limit)).toContain('blocked for 10m');
    expect(await refused(place, 'block', 'plann', KEY, ...limit)).toContain("Did you mean 'plan'?");
    const other = ['--limit', 'gcra:10/1h,scope=world'];
    expect(await refused(place, 'block', 'plan', 'tenant:2', ...other)).toContain(
      "count 'plan' by fixed-window, not by",
    );
  });

  it('neither calls the home for a region nor takes units', async () => {
    await world.closeApps();
    const before = await contents();
    await done('both', ...ofPlan);
    await done('home', ...ofPlan);
    await done('both', ...ofKey('burst', '--limit', BURST));
    expect(await contents()).toEqual(before);
  });

  it('knows when the home grants nothing, since it may have lost charges', async () => {
    await world.closeApps();
    const home = new Redis(world.home.url);
    const regions = `${prefix}:world:regions`;
    expect(await done('both', ...ofPlan)).toContain('allows');
    const [seconds] = await home.time();
    await home.hset(regions, 'lost', `${Number(seconds) - 60}000000`);
    expect(await done('both', ...ofPlan)).toMatch(/ 0\/10 .* refuses, retry after 5[89](?:\.\d+)? min/);
    await home.hset(regions, 'lost', `${Number(seconds) - 3601}000000`);
    expect(await done('both', ...ofPlan)).toContain('allows');
    await home.hset(regions, 'history', '1');
    expect(await done('both', ...ofPlan)).toContain('refuses, retry after 250 ms');
    home.disconnect();
  });

  /** All that both servers have, byte for byte. */
  async function contents(): Promise<Record<string, string>[]> {
    const servers = [world.home, world.serverOf('eu')].map(({ url }) => new Redis(url));
    const found = await Promise.all(
      servers.map(async (redis) => {
        const keys = await redis.keys(`${prefix}:*`);
        const values = await Promise.all(keys.map(async (key) => (await redis.dumpBuffer(key)).toString('hex')));
        return Object.fromEntries(keys.map((key, index) => [key, values[index]!]));
      }),
    );
    for (const redis of servers) redis.disconnect();
    return found;
  }

  it('explains limits of a region by what was changed at the home', async () => {
    await eu.limiters.setRate('burst', { rate: 2 });
    const explained = await done('both', ...ofKey('burst', '--limit', BURST));
    expect(explained).toContain('1/2');
    expect(explained).toContain('rate by the override of all keys');
    await eu.limiters.deny({ identity: KEY });
    expect(await done('both', ...ofKey('burst', '--limit', BURST))).toMatch(/^limit 'burst': denied/);
  });

  it('says what it does not know without the home', async () => {
    await eu.limiters.setRate('burst', { rate: 1 });
    const { code, stdout, stderr } = await at('region', ...ofKey('burst', '--limit', BURST));
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toContain("limit 'burst': unknown, changes are stored at the home of the regions");
    expect(stdout).toContain("Use '--home' or '--module'");
    expect(stdout).not.toContain('allows');
    const json = JSON.parse((await at('region', ...ofKey('burst', '--limit', BURST, '--json'))).stdout) as Explanation;
    expect(json).toMatchObject({ outcome: { verdict: 'unknown' }, limits: [{ state: { remaining: 4 } }] });
    expect(json.unread).toContain('stored at the home');
    expect(json.limits[0]!.decision).toBeUndefined();
  });

  it('blocks keys of a region on its Redis, and says that another rate may hold', async () => {
    const alone = await done('region', 'block', 'burst', KEY, '--limit', BURST);
    expect(alone).toContain('blocked for 10m');
    expect(alone).toContain('another rate or mode may hold: this is the Redis of a region');
    expect(await done('both', 'unblock', 'burst', KEY, '--limit', BURST)).not.toContain('may hold');
  });

  it('does not look for limits of a region at the home', async () => {
    const message =
      "this is the home of regions, but limit 'burst' counts in each region. Set '--redis' to the region's Redis in addition to '--home'";
    for (const command of [['block', 'burst', KEY, '--force'], ['reset', 'burst', KEY], ofKey('burst')]) {
      expect(await refused('home', ...command, '--limit', BURST)).toContain(message);
    }
  });

  const CHANGES = [
    ['deny', '203.0.113.7'],
    ['deny', '203.0.113.7', '--force'],
    ['deny', KEY, '--name', 'burst'],
    ['unlist', KEY],
    ['rates', 'set', 'plan', 'rate=5', '--limit', PLAN],
    ['rates', 'set', 'plan', 'rate=5', '--limit', PLAN, '--force'],
    ['rates', 'mode', 'burst', 'shadow', '--limit', BURST],
    ['rates'],
  ];
  const KEPT_AT_HOME =
    "this is the Redis of a region, but rates, modes and lists are stored at the home of the regions. Use '--home' or '--module'";

  it('changes no rate, mode or list on the Redis of a region, where no instance looks', async () => {
    for (const change of CHANGES) expect(await refused('region', ...change)).toContain(KEPT_AT_HOME);
  });

  it('takes what is left there of the time before regions for nothing that holds', async () => {
    const former = await RatesApp.start({
      redis: world.serverOf('eu').url,
      prefix,
      define: { burst: { algo: 'fixed-window', rate: 5, interval: '1h' } },
    });
    try {
      await former.service.setRate('burst', { rate: 3 });
      for (const change of CHANGES) expect(await refused('region', ...change)).toContain(KEPT_AT_HOME);
    } finally {
      await former.close();
    }
  });

  it.each(['home', 'both'] as const)('changes rates and lists at the home, given %s', async (place) => {
    await done(place, 'rates', 'set', 'plan', 'rate=5', '--limit', PLAN);
    await done(place, 'deny', KEY, '--name', 'plan');
    await done(place, 'deny', '203.0.113.7');
    expect(await done(place, 'rates')).toContain('rate=5');
    expect(await eu.limiters.getRate('plan')).toMatchObject({ options: { rate: 5 } });
  });

  it('finds counters of a region beside the home', async () => {
    const message = "the home of regions has no counter of a limit 'burst', which may count in each region";
    expect(await refused('home', 'rates', 'set', 'burst', 'rate=5', '--limit', BURST)).toContain(message);
    expect(await refused('home', 'deny', KEY, '--name', 'burst')).toContain(message);
    await done('home', 'rates', 'set', 'burst', 'rate=4', '--limit', BURST, '--force');
    await done('both', 'rates', 'set', 'burst', 'rate=3', '--limit', BURST);
    await done('both', 'deny', KEY, '--name', 'burst');
    expect(await eu.limiters.getRate('burst')).toMatchObject({ options: { rate: 3 } });
    expect(await refused('both', 'deny', KEY, '--name', 'bursts')).toContain("Did you mean 'burst'?");
  });

  it('takes the home of the environment', async () => {
    await eu.limiters.setRate('burst', { rate: 2 });
    process.env['HOME_REDIS_URL'] = world.home.url;
    try {
      expect(await done('region', ...ofKey('burst', '--limit', BURST))).toContain('1/2');
    } finally {
      delete process.env['HOME_REDIS_URL'];
    }
  });

  it('needs the rights that the guide names', async () => {
    const more = { eu: ['+hmget', '+scan', '+zrange', '+get'], home: ['+hkeys', `&${prefix}:world:ended`] };
    const [redis, home] = await Promise.all([
      userAt(world.serverOf('eu').url, [...rightsOf(prefix), ...more.eu]),
      userAt(world.home.url, [...rightsOf(prefix), ...more.home, '+pubsub|numsub', '+scan']),
    ]);
    const run = (...args: string[]) =>
      runHere([...args, '--prefix', prefix, '--timeout', '5s', '--redis', redis, '--home', home]);
    for (const command of [
      ofPlan,
      ofKey('burst', '--limit', BURST),
      ['block', 'plan', KEY, '--limit', WORLD_PLAN],
      ['reset', 'plan', KEY, '--limit', WORLD_PLAN],
      ['block', 'burst', KEY, '--limit', BURST],
      ['rates', 'set', 'burst', 'rate=2', '--limit', BURST],
      ['deny', KEY],
    ]) {
      const { code, stderr } = await run(...command);
      expect([command, code, stderr]).toEqual([command, 0, '']);
    }
  });

  it.each([[], ['+scan']])('does not take the lack of a right for a region: %p', async (...more) => {
    const alone = freshPrefix();
    const redis = await userAt(world.serverOf('us').url, [...rightsOf(alone), ...more]);
    const args = ['--name', 'burst', '--key', KEY, '--limit', BURST, '--prefix', alone, '--redis', redis];
    const { code, stdout } = await runHere(['explain', ...args, '--timeout', '5s']);
    expect([code, stdout]).toEqual([0, expect.stringContaining("limit 'burst': allowed")]);
  });

  it('refuses a home that is another one', async () => {
    const { url } = world.serverOf('us');
    const { url: redis } = world.serverOf('eu');
    for (const command of [['deny', KEY, '--force'], ['rates'], ofKey('burst', '--limit', BURST)]) {
      const args = [...command, '--prefix', prefix, '--timeout', '5s', '--redis', redis, '--home', url];
      const { code, stdout, stderr } = await runHere(args);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(`--home: '${url}' is not the home of the region 'eu' under the prefix`);
    }
  });

  it.each([
    [['--home', 'localhost'], "--home: expected a URL such as redis://localhost:6379, received 'localhost'"],
    [['--home', 'redis://localhost', '--module', 'x.js'], '--home: the option is only for Redis without the app'],
  ])('refuses %p', async (args, message) => {
    const redis = args.includes('--module') ? [] : ['--redis', 'redis://localhost'];
    const { code, stderr } = await runHere(['rates', ...redis, ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it('shows by the module what is changed at the home', async () => {
    process.env['REGION_TEST'] = JSON.stringify([prefix, world.serverOf('eu').url, world.home.url]);
    await done('home', 'deny', '203.0.113.7');
    const module = join(PACKAGE_FOLDER, 'test/cli/apps/region.module.mjs');
    expect((await runHere(['rates', '--module', module])).stdout).toContain('203.0.113.7');
    const denied = await runHere(['deny', '203.0.113.8', '--module', module]);
    expect(denied.stdout).toMatch(/after +deny/);
    expect(await done('home', 'rates')).toContain('203.0.113.8');
  });

  it('takes the Redis of a region that is also the home as both', async () => {
    prefix = freshPrefix();
    eu = await world.app('eu', {
      limits: {
        prefix,
        regions: { name: 'eu', home: world.serverOf('eu').url },
        define: {
          plan: { algo: 'fixed-window', rate: 10, interval: '1h', scope: 'world' },
          burst: { algo: 'fixed-window', rate: 5, interval: '1h' },
        },
      },
    });
    await eu.limiters.for('plan').consume(KEY);
    await done('region', 'rates', 'set', 'plan', 'rate=5', '--limit', PLAN);
    await done('region', 'deny', '203.0.113.7');
    expect(await refused('region', 'block', 'plan', KEY, '--limit', PLAN)).toContain('counts over several regions');
    expect(await done('region', 'block', 'plan', KEY, '--limit', WORLD_PLAN)).toContain('blocked for 10m');
    await eu.limiters.for('burst').consume(KEY);
    expect(await done('region', ...ofKey('burst', '--limit', BURST))).toContain('4/5');
  });
});
