import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { World } from '../regions/world.js';
import { ensureBuilt } from '../support/built.js';
import { PACKAGE_FOLDER } from '../support/npm.js';
import { freshPrefix } from '../support/stores.js';
import { runHere } from './run-program.js';

const KEY = 'tenant:acme';
const PLAN = 'fixed-window:10/1h';
const BURST = 'fixed-window:5/1h';

describe('the terminal over regions', () => {
  let world: World;
  let prefix = '';

  beforeAll(async () => {
    await ensureBuilt();
    world = await World.start();
  }, 300_000);
  afterAll(() => world.stop());

  beforeEach(async () => {
    prefix = freshPrefix();
    const eu = await world.app('eu', {
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

  function at(place: 'region' | 'home', ...args: string[]) {
    const { url } = place === 'home' ? world.home : world.serverOf('eu');
    return runHere([...args, '--redis', url, '--prefix', prefix, '--timeout', '5s']);
  }

  async function refused(place: 'region' | 'home', ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await at(place, ...args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    return stderr;
  }

  async function done(place: 'region' | 'home', ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await at(place, ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  }

  it.each(['region', 'home'] as const)(
    'leaves counters over regions to the app, on the Redis of the %s',
    async (place) => {
      const message = "limit 'plan' counts over several regions, wants '--module'\n";
      const commands = [['block'], ['unblock'], ['reset']].map((each) => [...each, 'plan', KEY]);
      for (const command of [...commands, ['explain', '--name', 'plan', '--key', KEY]]) {
        expect(await refused(place, ...command, '--limit', PLAN)).toContain(message);
      }
    },
  );

  it('explains and changes counters of a region on its Redis', async () => {
    expect(await done('region', 'explain', '--name', 'burst', '--key', KEY, '--limit', BURST)).toContain('4/5');
    expect(await done('region', 'block', 'burst', KEY, '--limit', BURST)).toContain('blocked for 10m');
  });

  it('changes no rate, mode or list on the Redis of a region, where no instance looks', async () => {
    const message =
      "this is the Redis of a region, while changes for all regions are kept at the home; wants the home's '--redis', or '--module'";
    const changes = [
      ['deny', '203.0.113.7'],
      ['deny', KEY, '--name', 'burst'],
      ['unlist', KEY],
      ['rates', 'set', 'plan', 'rate=5', '--limit', PLAN],
      ['rates', 'mode', 'burst', 'shadow', '--limit', BURST],
      ['rates'],
    ];
    for (const change of changes) expect(await refused('region', ...change)).toContain(message);
  });

  it('changes rates and lists at the home', async () => {
    await done('home', 'rates', 'set', 'plan', 'rate=5', '--limit', PLAN);
    await done('home', 'deny', KEY, '--name', 'plan');
    await done('home', 'deny', '203.0.113.7');
    expect(await done('home', 'rates')).toContain('rate=5');
  });

  it('says that limits of one region have no counter at the home', async () => {
    const message =
      "the home of regions has no counter of a limit 'burst', which may count in each region; wants '--force' if the name is right";
    expect(await refused('home', 'rates', 'set', 'burst', 'rate=5', '--limit', BURST)).toContain(message);
    expect(await refused('home', 'deny', KEY, '--name', 'burst')).toContain(message);
    await done('home', 'rates', 'set', 'burst', 'rate=4', '--limit', BURST, '--force');
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
    const eu = await world.app('eu', {
      limits: {
        prefix,
        regions: { name: 'eu', home: world.serverOf('eu').url },
        define: { plan: { algo: 'fixed-window', rate: 10, interval: '1h', scope: 'world' } },
      },
    });
    await eu.limiters.for('plan').consume(KEY);
    await done('region', 'rates', 'set', 'plan', 'rate=5', '--limit', PLAN);
    await done('region', 'deny', '203.0.113.7');
    expect(await refused('region', 'block', 'plan', KEY, '--limit', PLAN)).toContain('counts over several regions');
  });
});
