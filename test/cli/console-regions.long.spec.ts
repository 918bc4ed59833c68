import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RateLimitConsoleModule } from '../../lib/console/index.js';
import { type Lookup, type Overview, type Rates, type Session, WHO_MAY } from '../console/console-app.js';
import { type AppInRegion, World } from '../storage/features/regions/world.js';
import { browserOfSpec } from '../support/browser/browser.js';
import { ensureBuilt } from '../support/processes/built.js';
import { freshPrefix } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { runHere } from './run-program.js';
import { ServedConsole } from './served-console.js';
import { consoleOf } from '../console/console-app.js';

const KEY = 'user:1';
const KEPT_AT_HOME = 'stored at the home of the regions';

const browser = browserOfSpec();

async function lookup(served: ServedConsole): Promise<Lookup> {
  const answer = await served.post('lookup', { identity: KEY });
  return (await answer.json()) as Lookup;
}

const of = ({ limits }: Lookup, name: string) => limits.find(({ limit }) => limit === name);

describe('nestjs-sluice console, in a region', () => {
  const prefix = freshPrefix();
  let world: World;
  let eu: AppInRegion;
  const consoles: ServedConsole[] = [];

  beforeAll(async () => {
    await ensureBuilt();
    world = await World.start();
    eu = await appOf('eu', prefix);
    for (let call = 0; call < 3; call++) await eu.limiters.for('plan').consume(KEY);
    await eu.limiters.for('burst').consume(KEY);
  }, 300_000);
  afterAll(async () => {
    await Promise.all(consoles.map((each) => each.stop()));
    await world.stop();
  });

  async function appOf(region: 'eu' | 'us', ownPrefix: string): Promise<AppInRegion> {
    const app = await world.app(region, {
      limits: {
        prefix: ownPrefix,
        define: {
          plan: { algo: 'fixed-window', rate: 10, interval: '1h', key: 'user', scope: 'world' },
          burst: { algo: 'fixed-window', rate: 5, interval: '1h', key: 'user' },
        },
      },
      imports: [RateLimitConsoleModule.forRoot({ ...WHO_MAY, path: 'ops/limits' })],
    });
    await consoleOf(app.nest).recorder.flush();
    return app;
  }

  async function serve(...args: string[]): Promise<ServedConsole> {
    const { url } = world.serverOf('eu');
    const served = await ServedConsole.start('--redis', url, '--prefix', prefix, '--timeout', '5s', ...args);
    consoles.push(served);
    return served;
  }

  describe('without the home', () => {
    let served: ServedConsole;
    beforeAll(async () => {
      served = await serve('--write', '--by', 'eva');
    });

    it('starts, shows all limits, and says what it does not know', async () => {
      expect(served.printed).toContain("'--home' shows and changes them");
      const session = await served.read<Session>('session');
      const plan = session.limits.find(({ name }) => name === 'plan');
      expect(plan).toMatchObject({ rate: 'fixed-window:10/1h', addressable: false, changeable: false });
      expect(session.limits.find(({ name }) => name === 'burst')).toMatchObject({
        addressable: true,
        changeable: false,
      });
      expect(session.changesUnread).toContain(KEPT_AT_HOME);
      await until(async () => (await served.read<Overview>('overview?range=1h')).totals['plan']?.allowed === 3);
    });

    it('shows no rate, mode or list as one that holds', async () => {
      await eu.limiters.setRate('burst', { rate: 2 });
      for (const path of ['rates', 'lists']) {
        const { problem } = await served.read<Pick<Rates, 'problem'>>(path);
        expect([path, problem]).toEqual([path, expect.stringContaining(KEPT_AT_HOME)]);
        // Redis does answer, and the console has no such option.
        expect(problem).not.toMatch(/Redis does not answer|--module/);
      }
      expect(of(await lookup(served), 'burst')).toMatchObject({
        used: null,
        unread: expect.stringContaining("'--home'"),
      });
      expect(of(await lookup(served), 'plan')).toBeUndefined();
      await eu.limiters.clearRate('burst');
    });

    it('stores no change where nobody reads it', async () => {
      const region = new Redis(world.serverOf('eu').url);
      const before = await region.keys(`${prefix}:*rates*`);
      for (const [path, body] of [
        ['rates/set', { limit: 'burst', patch: { rate: 1 } }],
        ['modes/set', { limit: 'burst', mode: 'off' }],
        ['lists', { list: 'deny', identity: KEY }],
        ['keys/override', { limit: 'burst', identity: KEY, patch: { rate: 1 }, expiresIn: '1h' }],
      ] as const) {
        const answer = await served.post(path, { ...body, reason: 'a test' });
        expect([path, answer.status, await answer.text()]).toEqual([path, 503, expect.stringContaining("'--home'")]);
      }
      const ofWorld = await served.post('rates/set', { limit: 'plan', patch: { rate: 1 }, reason: 'a test' });
      expect(ofWorld.status).toBe(400);
      expect(await region.keys(`${prefix}:*rates*`)).toEqual(before);
      region.disconnect();
    });

    it('blocks a key of a limit that counts in the region', async () => {
      const block = { limit: 'burst', identity: KEY, duration: '1m', reason: 'a test' };
      expect((await served.post('keys/block', block)).status).toBe(200);
      expect(await eu.limiters.for('burst').consume(KEY)).toMatchObject({ allowed: false });
      await eu.limiters.for('burst').unblock(KEY);
    });

    it('says so on its page', async () => {
      const { page } = await browser.open(served.link);
      await page.getByRole('status').filter({ hasText: KEPT_AT_HOME }).first().waitFor();
      await page.getByRole('link', { name: 'plan', exact: true }).first().waitFor();
    });
  });

  describe('with the home', () => {
    let served: ServedConsole;
    beforeAll(async () => {
      served = await serve('--home', world.home.url, '--write', '--by', 'eva');
    });

    it('looks limits over regions up', async () => {
      const session = await served.read<Session>('session');
      expect(session).not.toHaveProperty('changesUnread');
      expect(session.limits.find(({ name }) => name === 'plan')).toMatchObject({ addressable: true, changeable: true });
      const found = await lookup(served);
      expect(of(found, 'plan')).toMatchObject({ quota: 10, regions: [{ region: 'eu', held: expect.any(Number) }] });
      expect(of(found, 'plan')!.used).toBeGreaterThanOrEqual(3);
      expect(of(found, 'burst')).toMatchObject({ quota: 5 });
    });

    it('shows and makes changes at the home', async () => {
      await eu.limiters.setRate('burst', { rate: 4 });
      await until(async () => of(await lookup(served), 'burst')!.quota === 4);
      const set = { limit: 'plan', patch: { rate: 20 }, reason: 'Launch' };
      expect((await served.post('rates/set', set)).status).toBe(200);
      expect(await eu.limiters.getRate('plan')).toMatchObject({ options: { rate: 20 }, override: { by: 'eva' } });
      await eu.limiters.clearRate('plan');
      await eu.limiters.clearRate('burst');
    });

    it('blocks and resets for all regions', async () => {
      const plan = { limit: 'plan', identity: KEY, reason: 'a test' };
      expect((await served.post('keys/block', { ...plan, duration: '1m' })).status).toBe(200);
      await until(async () => !(await eu.limiters.for('plan').consume(KEY)).allowed);
      expect((await served.post('keys/reset', plan)).status).toBe(200);
      await until(async () => (await eu.limiters.for('plan').consume(KEY)).allowed);
    });

    it('leaves units to instances', async () => {
      const refund = { limit: 'plan', identity: KEY, units: 1, reason: 'a test' };
      const answer = await served.post('keys/refund', refund);
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('an instance of the app')]);
    });

    it('says nothing to the home, and takes no units', async () => {
      const alone = freshPrefix();
      const app = await appOf('us', alone);
      await app.limiters.for('plan').consume(KEY);
      world.apps.splice(world.apps.indexOf(app), 1);
      await app.nest.close();
      const home = new Redis(world.home.url);
      const states = async () => [
        await home.hgetall(`${alone}:world:regions`),
        await Promise.all((await home.keys(`${alone}:world:{*`)).toSorted().map((key) => home.dump(key))),
      ];
      const before = await states();
      const beside = await ServedConsole.start(
        '--redis',
        world.serverOf('us').url,
        '--prefix',
        alone,
        '--timeout',
        '5s',
        '--home',
        world.home.url,
      );
      consoles.push(beside);
      expect(of(await lookup(beside), 'plan')).toMatchObject({ quota: 10, regions: [{ region: 'us' }] });
      // Longer than an instance keeps silent.
      await new Promise((resolve) => {
        setTimeout(resolve, 1500);
      });
      expect(await states()).toEqual(before);
      home.disconnect();
    });
  });

  it('knows a region by its instances, before a limit over regions was used', async () => {
    const unused = freshPrefix();
    await appOf('us', unused);
    const { url } = world.serverOf('us');
    const served = await ServedConsole.start('--redis', url, '--prefix', unused, '--timeout', '5s');
    consoles.push(served);
    expect((await served.read<Session>('session')).changesUnread).toContain(KEPT_AT_HOME);
    const place = ['--prefix', unused, '--timeout', '5s', '--redis', url];
    expect((await runHere(['deny', KEY, ...place])).stderr).toContain(KEPT_AT_HOME);
    expect((await runHere(['deny', KEY, ...place, '--home', world.home.url])).code).toBe(0);
  });

  it('says on the Redis of the home where limits are published', async () => {
    const args = ['console', '--redis', world.home.url, '--prefix', prefix, '--timeout', '5s'];
    const { code, stdout, stderr } = await runHere(args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain("Set '--redis' to a region's Redis, and '--home' to this one");
  });
});
