import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LimitDefinition } from '../../../lib/index.js';
import { browserOfSpec } from '../../support/browser/browser.js';
import { until } from '../../support/time/until.js';
import { findings, THEMES } from './axe.js';
import { ConsolePage, Instances } from './console-page.js';
import { hashOf } from '../../support/limits/hashed.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;
const LIMITS = 500;
/** How tall a view may be, in screens. */
const MOST_SCREENS = 3;

const SCREENS = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
] as const;

const GCRA = { algo: 'gcra', rate: 5, interval: '1h' } as const;
const WINDOW = { algo: 'fixed-window', rate: 5, interval: '1h' } as const;

const VIEWS_OF_MANY = ['overview', 'limit/service-33.call-3', 'deviations', 'lookup', 'rates', 'lists', 'changes'];

/** Limits of many services, counted by different keys. */
const define: Record<string, LimitDefinition> = Object.fromEntries(
  Array.from({ length: LIMITS }, (_, index): [string, LimitDefinition] => [
    `service-${Math.floor(index / 10)}.call-${index % 10}`,
    { ...(index % 2 === 0 ? GCRA : WINDOW), key: index % 5 === 0 ? 'user' : 'ip' },
  ]),
);
const NAMES = Object.keys(define);
define['fast'] = { algo: 'fixed-window', rate: 50, interval: '1s', key: 'user' };

const browser = browserOfSpec();

describe('the console of an app with 500 limits', () => {
  let app: Instances;

  beforeAll(async () => {
    app = await Instances.start(2, REDIS, { controllers: [], limits: { define } });
    // All of them are used, one is refused, one comes near.
    const { service } = app.apps[0]!;
    for (const name of NAMES) await service.for(name).consume('user:1');
    for (let call = 0; call < 40; call++) await service.for('service-33.call-3').consume('user:7');
    for (let call = 0; call < 3; call++) await service.for('service-45.call-0').consume('user:8', 1);
  });

  afterAll(() => app?.close());

  it('lists those that hurt first, in pages, and counts each', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page, complaints } = opened;
    await opened.cellWith(/^35\s/, 'service-33.call-3', 'Refused');
    const rows = page.getByRole('region', { name: 'Limits' }).locator('tbody tr');
    expect(await rows.first().textContent()).toContain('service-33.call-3');
    expect(await rows.count()).toBeLessThanOrEqual(25);
    await page.getByText(/^1 to \d+ of 501$/).waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText(/^11 to 20 of 501$/).waitFor();
    await page.getByLabel('Find limits').fill('service-49 call-9');
    await opened.cellWith(/^1\s/, 'service-49.call-9', 'Allowed');
    expect(await rows.count()).toBe(1);
    expect(complaints).toEqual([]);
  });

  it('keeps what is listed in the link', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page } = opened;
    await page.getByLabel('Show', { exact: true }).selectOption('refusing');
    await opened.cellWith(/^35\s/, 'service-33.call-3', 'Refused');
    await page.getByLabel('Show', { exact: true }).selectOption('used');
    await page.getByLabel('Group', { exact: true }).selectOption('key');
    await page.getByRole('link', { name: 'by user', exact: true }).click();
    await page.getByText(/of 100$/).waitFor();
    await page.getByRole('button', { name: 'Share refused' }).click();
    await page.getByLabel('1 hour').check();
    const again = await ConsolePage.open(browser, page.url());
    await again.page.getByText(/of 100$/).waitFor();
    expect(await again.page.getByLabel('Show', { exact: true }).inputValue()).toBe('used');
    expect(await again.page.getByLabel('1 hour').isChecked()).toBe(true);
    expect(await again.page.getByRole('columnheader', { name: 'Share refused' }).getAttribute('aria-sort')).toBe(
      'descending',
    );
    expect(page.url()).toContain('#/overview?');
  });

  it('changes the rate of a limit on its page', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page } = opened;
    await opened.show('limit/service-10.call-2');
    await page.getByRole('button', { name: 'Change the rate' }).click();
    await opened.dialog.getByLabel(/^Rate/).first().fill('50');
    await opened.dialog.getByLabel('Reason').fill('Launch');
    await opened.dialog.getByRole('button', { name: 'Change the rate' }).click();
    await opened.dialog.waitFor({ state: 'detached' });
    const service = app.apps[1]!.service;
    await until(async () => (await service.getRate('service-10.call-2')).options.rate === 50);
  });

  it('says who is behind what hurts, and raises or blocks him in two clicks', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page, complaints } = opened;
    const { service } = app.apps[1]!;
    const limiter = service.for('service-33.call-3');
    // Refusals of the last minute are what hurts.
    const refuse = async () => {
      for (let call = 0; call < 30; call++) await limiter.consume('ip:203.0.113.7');
    };
    const incidents = page.getByRole('region', { name: 'Active incidents' });
    // Nobody sees the identity.
    const who = incidents.getByRole('group', { name: `Act on ${hashOf('ip:203.0.113.7')} in service-33.call-3` });
    const raise = who.getByRole('button', { name: 'Raise', exact: true });
    await until(async () => {
      await refuse();
      return (await raise.count()) > 0;
    });
    await raise.click();
    await opened.dialog.getByRole('button', { name: 'Raise' }).click();
    await opened.dialog.waitFor({ state: 'detached' });
    const key = 'ip:203.0.113.7';
    const raised = await service.getRate('service-33.call-3', { key });
    expect(raised).toMatchObject({ source: 'key', options: { rate: 10 }, override: { reason: expect.any(String) } });
    expect(raised.override!.expiresAt! - Date.now()).toBeLessThanOrEqual(600_000);
    await page.getByRole('button', { name: 'Undo', exact: true }).click();
    await until(async () => (await service.getRate('service-33.call-3', { key })).source === 'configured');
    expect(complaints).toEqual([]);
  });

  it('shows what one client used, folds the rest, and says of whom nothing is known', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page } = opened;
    await opened.lookUp('user:8');
    await page.getByRole('heading', { name: 'service-45.call-0' }).waitFor();
    await page.getByText(/^\d+ limits that have counted nothing of it$/).waitFor();
    const height = await page.evaluate<number>('document.documentElement.scrollHeight / innerHeight');
    expect(height).toBeLessThanOrEqual(MOST_SCREENS);
    expect(await page.getByText(/Nothing is known of/).count()).toBe(0);
    await opened.lookUp('user:nonsense');
    await page.getByText(/^Nothing is known of/).waitFor();
    expect(await page.getByText('free', { exact: true }).count()).toBe(0);
  });

  it('chooses a rate from what clients asked for', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page } = opened;
    const { service } = app.apps[1]!;
    await opened.show('limit/fast');
    const slider = page.getByRole('slider');
    await until(async () => {
      await Promise.all(['anna', 'anna', 'anna', 'bert'].map((who) => service.for('fast').consume(who)));
      return (await slider.count()) > 0;
    });
    await slider.focus();
    await page.keyboard.press('Home');
    await page.getByText(/^1 in 1.s.* would have refused .* of what was asked for/).waitFor();
    await page.getByRole('button', { name: 'Preview as a candidate' }).click();
    await opened.dialog.getByRole('button', { name: 'Preview as a candidate' }).click();
    await opened.dialog.waitFor({ state: 'detached' });
    expect((await service.getRate('fast')).candidate).toMatchObject({ rate: 1 });
  });

  it.each(SCREENS)('shows each view on three screens of $width pixels at most', async (viewport) => {
    const opened = await ConsolePage.open(browser, app.url, { viewport });
    for (const view of VIEWS_OF_MANY) {
      if (view === 'lookup') await opened.lookUp('user:7');
      else await opened.show(view);
      if (view === 'overview') await opened.cellWith(/^[1-9][\d,]*\s/, 'service-33.call-3', 'Refused');
      const height = await opened.page.evaluate<number>('document.documentElement.scrollHeight');
      expect([view, height / viewport.height]).toEqual([view, expect.any(Number)]);
      expect([view, Math.max(MOST_SCREENS, height / viewport.height)]).toEqual([view, MOST_SCREENS]);
    }
  });

  it.each(THEMES)('has nothing that axe finds on a phone, in any view (%s)', async (colorScheme, rules) => {
    const opened = await ConsolePage.open(browser, app.url, { colorScheme, viewport: SCREENS[2], isMobile: true });
    for (const view of VIEWS_OF_MANY) {
      if (view === 'lookup') await opened.lookUp('user:7');
      else await opened.show(view);
      expect([view, await findings(opened, rules)]).toEqual([view, []]);
    }
  });
});
