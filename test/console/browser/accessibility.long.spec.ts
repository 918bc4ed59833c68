import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { type LimitDefinition, usd } from '../../../lib/index.js';
import { browserOfSpec } from '../../support/browser/browser.js';
import { until } from '../../support/time/until.js';
import { findings, THEMES } from './axe.js';
import { ConsolePage, Instances, VIEWS } from './console-page.js';
import { SHOP } from './demo-shop.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;

const PHONE = { width: 360, height: 740 };

const browser = browserOfSpec();

describe('the page of the console', () => {
  let app: Instances;

  beforeAll(async () => {
    app = await Instances.start(1, REDIS, { console: { topKeys: 'always' } });
    await app.send(30, 'anna');
    const { service } = app.apps[0]!;
    await service.for('things').block('bert', '1h');
    await service.allow({ ip: '192.0.2.0/24' }, { reason: 'Health checks' });
    await service.setRate('things', { rate: 12 }, { by: 'ada@example.com', reason: 'Launch' });
  });

  afterAll(() => app?.close());

  it.each(THEMES)('has nothing that axe finds, in any view (%s)', async (colorScheme, rules) => {
    const opened = await ConsolePage.open(browser, app.url, { colorScheme });
    for (const view of VIEWS) {
      await opened.show(view);
      if (view === 'lookup') await opened.lookUp('bert');
      expect([view, await findings(opened, rules)]).toEqual([view, []]);
    }
    await opened.lookUp('carl');
    await opened.card('things').getByRole('button', { name: 'Block', exact: true }).click();
    await opened.dialog.getByRole('button', { name: 'Block', exact: true }).click();
    await opened.dialog.getByText('Reason is missing.').waitFor();
    expect(await findings(opened, rules)).toEqual([]);
    expect(opened.complaints).toEqual([]);
  });

  it('needs no scrolling sideways on a phone', async () => {
    const opened = await ConsolePage.open(browser, app.url, { viewport: PHONE, hasTouch: true, isMobile: true });
    for (const view of VIEWS) {
      await opened.show(view);
      if (view === 'lookup') await opened.lookUp(`user:${'x'.repeat(120)}`);
      const widths = await opened.page.evaluate<number[]>('[document.documentElement.scrollWidth, innerWidth]');
      expect([view, ...widths]).toEqual([view, PHONE.width, PHONE.width]);
    }
  });

  it('has the theme of the system until another one is chosen, and remembers that', async () => {
    const { page } = await ConsolePage.open(browser, app.url, { colorScheme: 'light' });
    const scheme = () => page.evaluate<string>('getComputedStyle(document.documentElement).colorScheme');
    const canvas = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
    const light = await canvas();
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await canvas();
    expect(dark).not.toBe(light);
    await page.getByLabel('Light theme').check();
    expect([await canvas(), await scheme()]).toEqual([light, 'light']);
    await page.reload();
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await canvas()).toBe(light);
  });

  it('moves nothing for those who want no motion', async () => {
    const { page } = await ConsolePage.open(browser, app.url, { reducedMotion: 'reduce' });
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await page.evaluate<number>('document.getAnimations().length')).toBe(0);
  });
});

describe('the panels of the console', () => {
  /** The limits of the shop, and what it has none of: leases, usage and regions. */
  const define: Record<string, LimitDefinition> = {
    ...SHOP.define,
    slots: { algo: 'concurrency', limit: 5, ttl: '10m', key: 'user' },
    answers: {
      algo: 'fixed-window',
      rate: 9_000,
      interval: '1h',
      key: 'user',
      usage: '90d',
      hold: '10m',
      unit: 'tokens',
    },
    everywhere: { algo: 'fixed-window', rate: 900, interval: '1h', key: 'user', scope: 'world' },
  };
  let app: Instances;

  beforeAll(async () => {
    app = await Instances.start(1, REDIS, {
      controllers: [],
      limits: { define, regions: { name: 'eu', home: REDIS }, timeout: '250ms' },
      console: { topKeys: 'always', identities: 'plain' },
    });
    const [first] = app.apps;
    const { service } = first!;
    // Their units are counted while somebody looks.
    await Promise.all(['tree?limit=member', 'tenants?limit=renders'].map((part) => first!.read(part)));
    await pause(1_200);
    const within = { org: 'acme', team: 'team-0' };
    for (let call = 0; call < 6; call++) {
      await service.for('member').consume('user:40', { cost: 110, within });
      await service.for('renders').consume('global', { share: call % 3 === 0 ? 'user:blue' : 'user:acme', cost: 4 });
    }
    for (let call = 0; call < 40; call++) await service.for('login').consume('ip:198.51.100.7');
    await service.for('tokens').consume('user:40', 1_900_000);
    await service.for('money').consume('user:40', usd('0.5'));
    await service.for('slots').consume('user:40', 2);
    await service.for('answers').consume('user:40', 640);
    await service.for('answers').reserve('user:40', { cost: 300 });
    await until(async () => (await service.for('everywhere').consume('user:40')).source === 'redis');
    await service.for('checkout').block('user:40', '1h');
  });
  afterAll(() => app?.close());

  /** Each view, with what is to be there when axe looks. */
  const PANELS: readonly [view: string, regions: readonly string[]][] = [
    ['overview', ['Active incidents']],
    ['limit/login', ['Active incidents']],
    ['limit/member', ['Levels']],
    ['limit/renders', ['Tenants']],
    ['limit/money', ['Budget']],
    ['lookup', ['slots', 'answers', 'everywhere']],
    ['deviations', []],
  ];

  it.each([
    ...THEMES.map(([colorScheme, rules]) => ({ colorScheme, rules, viewport: { width: 1280, height: 720 } })),
    { colorScheme: 'light' as const, rules: undefined, viewport: { width: 390, height: 844 } },
  ])(
    'have nothing that axe finds ($colorScheme, $viewport.width pixels wide)',
    async ({ colorScheme, rules, viewport }) => {
      const opened = await ConsolePage.open(browser, app.url, { colorScheme, viewport });
      const { page } = opened;
      for (const [view, regions] of PANELS) {
        if (view === 'lookup') await opened.lookUp('user:40');
        else await opened.show(view);
        for (const name of regions) await page.getByRole('region', { name, exact: true }).waitFor();
        if (view === 'limit/member') await page.getByText('team-0').first().waitFor();
        if (view === 'limit/renders') await page.getByText('user:blue').first().waitFor();
        if (view === 'lookup') await page.getByRole('table', { name: 'What regions hold of everywhere' }).waitFor();
        await page.evaluate('for (const each of document.querySelectorAll("details")) each.open = true');
        expect([view, await findings(opened, rules)]).toEqual([view, []]);
        const width = await page.evaluate<number>('document.documentElement.scrollWidth');
        expect([view, width]).toEqual([view, viewport.width]);
      }
      expect(opened.complaints).toEqual([]);
    },
  );
});
