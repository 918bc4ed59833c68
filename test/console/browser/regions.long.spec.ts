import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LimitDefinition } from '../../../lib/index.js';
import { browserOfSpec } from '../../support/browser/browser.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { ConsoleApp, type Lookup } from '../console-app.js';
import { ConsolePage } from './console-page.js';

const PHONE = { width: 360, height: 740 };
const define: Record<string, LimitDefinition> = {
  everywhere: { algo: 'fixed-window', rate: 1000, interval: '1h', scope: 'world', unit: 'tokens' },
  here: { algo: 'fixed-window', rate: 10, interval: '1h' },
};

const browser = browserOfSpec();

describe('the look-up of a limit over regions', () => {
  let servers: RedisServer[] = [];
  let apps: ConsoleApp[] = [];

  beforeAll(async () => {
    servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
    const [home, eu, us] = servers.map(({ url }) => url) as [string, string, string];
    const prefix = freshPrefix();
    const start = (name: string, redis: string) =>
      ConsoleApp.start({ controllers: [], limits: { redis, prefix, define, regions: { name, home } } });
    apps = [await start('eu', eu), await start('us', us)];
    // Only one of the regions uses it. The home grants units once it has heard of each region.
    const everywhere = apps[1]!.service.for('everywhere');
    await until(() =>
      everywhere.consume('user:1').then(
        ({ source }) => source === 'redis',
        () => false,
      ),
    );
    await apps[0]!.service.for('here').consume('user:1');
  });
  afterAll(async () => {
    await Promise.all(apps.map((app) => app.close()));
    await Promise.all(servers.map((server) => server.stop()));
  });

  it('has what each region holds, and how old that is', async () => {
    const { limits } = (await (await apps[0]!.post('lookup', { identity: 'user:1' })).json()) as Lookup;
    const of = (name: string) => limits.find(({ limit }) => limit === name);
    const us = of('everywhere')?.regions?.find(({ region }) => region === 'us');
    expect(us).toMatchObject({ held: expect.any(Number), ageMs: expect.any(Number), seenMs: expect.any(Number) });
    expect(of('here')).not.toHaveProperty('regions');
  });

  it('shows it as a table, that fits on a phone', async () => {
    const opened = await ConsolePage.open(browser, `${apps[0]!.url}/ops/limits`, { viewport: PHONE, isMobile: true });
    const { page, complaints } = opened;
    await opened.lookUp('user:1');
    const table = opened.card('everywhere').getByRole('table', { name: 'What regions hold of everywhere' });
    await table.waitFor();
    const row = table.getByRole('row').filter({ hasText: 'us' });
    expect((await row.textContent())?.replaceAll('\u00a0', ' ')).toMatch(/^us\d+ tokens?[\d.]+ \S+.* ago.+ ago$/);
    expect(await opened.card('here').getByRole('table').count()).toBe(0);
    const widths = await page.evaluate<number[]>('[document.documentElement.scrollWidth, innerWidth]');
    expect(widths).toEqual([PHONE.width, PHONE.width]);
    expect(complaints).toEqual([]);
  });
});
