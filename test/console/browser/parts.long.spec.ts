import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { type LimitDefinition, RateLimit, usd } from '../../../lib/index.js';
import { browserOfSpec } from '../../support/browser/browser.js';
import { THINGS } from '../console-app.js';
import { ConsolePage, Instances } from './console-page.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;
/** As a browser shows it. */
const plain = (text: string | null): string => (text ?? '').replaceAll('\u00a0', ' ');

const define: Record<string, LimitDefinition> = {
  things: THINGS,
  org: { algo: 'fixed-window', rate: 100, interval: '1h' },
  team: { algo: 'fixed-window', rate: 10, interval: '1h', within: 'org', ceiling: 50 },
  gpu: { algo: 'sliding-window', rate: 100, interval: '1h', key: 'global', share: { by: 'user', floor: 0.1 } },
  money: { algo: 'budget', limit: usd(50), unit: 'USD', period: 'month', timezone: 'Europe/Berlin' },
  tokens: {
    algo: 'calendar-window',
    rate: 1000,
    period: 'day',
    retain: '3d',
    credits: true,
    unit: 'tokens',
    anchor: '2026-01-31',
    usage: { keep: '30d', timezone: 'Europe/Berlin' },
  },
  slots: { algo: 'concurrency', limit: 5, ttl: '1m' },
  cores: { algo: 'adaptive', min: 2, max: 20, scope: 'instance' },
};

@Controller('work')
class WorkController {
  @Get()
  @RateLimit('cores')
  async work() {
    await new Promise((resolve) => setTimeout(resolve, 300));
    return 'done';
  }
}

const browser = browserOfSpec();

describe('the page of a limit that has parts', () => {
  let app: Instances;

  beforeAll(async () => {
    const controllers = [WorkController];
    app = await Instances.start(2, REDIS, { controllers, limits: { define }, console: { identities: 'plain' } });
    const { service } = app.apps[1]!;
    // Their units are counted while somebody looks.
    await app.apps[0]!.read('tree?limit=team');
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    for (let call = 0; call < 15; call++) await service.for('team').consume('t1', { within: { org: 'acme' } });
    for (let call = 0; call < 6; call++) await service.for('gpu').consume('global', { share: 'user:blue' });
    await service.for('money').consume('acme', usd('0.5'));
    await service.for('tokens').consume('acme', 30);
    for (let lease = 0; lease < 2; lease++) await service.for('slots').consume('acme');
  });
  afterAll(() => app?.close());

  it('shows levels, what they have left, and who borrows', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page, complaints } = opened;
    await opened.show('limit/team');
    const levels = page.getByRole('region', { name: 'Levels' });
    await levels.getByText('t1').waitFor();
    expect(await levels.locator('tbody tr').allTextContents()).toEqual([
      expect.stringMatching(/^acmeorg15 of 100.*85–$/),
      expect.stringMatching(/^t1team, level 215 of 50.*355$/),
    ]);
    await page.getByText('within org, borrows beyond 10').waitFor();
    expect(complaints).toEqual([]);
  });

  it('shows tenants with weight, part and use', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    await opened.show('limit/gpu');
    const tenants = opened.page.getByRole('region', { name: 'Tenants' });
    await tenants.getByText('user:blue').waitFor();
    expect(await tenants.textContent()).toMatch(/each may always use 10\./);
    expect(await tenants.locator('tbody tr').textContent()).toMatch(/1 of 16 of 100/);
  });

  it('shows money as money, and what a plan says', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page } = opened;
    await opened.show('limit/money');
    const budget = page.getByRole('region', { name: 'Budget' });
    expect(plain(await budget.textContent())).toContain('$50.00 a month');
    await opened.show('limit/tokens');
    expect(plain(await page.getByRole('region', { name: 'Plan' }).textContent())).toMatch(
      /1,000 tokens a day.*Jan 31, 2026.*prepaid/,
    );
    await opened.lookUp('acme');
    expect(plain(await opened.card('money').textContent())).toContain('$0.50 of $50.00 used');
    expect(plain(await opened.card('tokens').textContent())).toContain('30 tokens of 1,000 tokens used');
    // Days are read as dates.
    expect(plain(await opened.card('tokens').getByRole('listitem').first().textContent())).toMatch(
      /^[A-Z][a-z]{2} \d+, \d{4}( to .*)?: 30 tokens$/,
    );
  });

  it('shows of a key what it was charged by days, and the leases that it holds', async () => {
    const opened = await ConsolePage.open(browser, app.url, { timezoneId: 'America/Los_Angeles' });
    await opened.lookUp('acme');
    const tokens = opened.card('tokens');
    expect(plain(await tokens.textContent())).toMatch(/Charged since [A-Z][a-z]{2} \d+, \d{4}30 tokens/);
    const table = tokens.getByRole('table', { name: 'What tokens charged by days' });
    expect(await table.count()).toBe(0);
    await tokens.getByText('Charged by days in Europe/Berlin').click();
    // Its days are those of the limit's zone, whatever that of the page is.
    const today = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'Europe/Berlin' }).format();
    expect(plain(await table.textContent())).toBe(`DayCharged${today}30 tokens`);
    const slots = plain(await opened.card('slots').textContent());
    expect(slots).toContain('2 of 5 used');
    expect(slots).toMatch(/Held by2 leases, lapse in [\d.]+ (s|min)/);
    expect(opened.complaints).toEqual([]);
  });

  it('shows what an adaptive limit admits and has in flight over time', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page } = opened;
    await opened.show('limit/cores');
    const end = Date.now() + 4_000;
    while (Date.now() < end) await Promise.all(app.apps.map((each) => each.get('work')));
    const chart = page.getByRole('application', { name: /^In flight of cores/ });
    await chart.focus();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    await page.getByText(/Admits [\d.]+, In flight [\d.]+$/).waitFor();
  });

  it('writes all times in the zone that is chosen', async () => {
    const opened = await ConsolePage.open(browser, app.url, { timezoneId: 'Asia/Tokyo' });
    const { page } = opened;
    await app.apps[0]!.service.setRate('money', { limit: usd(60) }, { reason: 'More' });
    await opened.show('changes');
    const time = async (): Promise<number> => {
      const [, hours = ''] =
        /, (\d\d):\d\d:\d\d/.exec((await page.locator('td.when').first().textContent()) ?? '') ?? [];
      return Number(hours);
    };
    await page.locator('td.when').first().waitFor();
    const inTokyo = await time();
    await page.getByLabel('Times in').selectOption({ label: 'UTC' });
    await page.locator('td.when').first().waitFor();
    expect((inTokyo - (await time()) + 24) % 24).toBe(9);
    await page.reload();
    await page.locator('td.when').first().waitFor();
    expect((inTokyo - (await time()) + 24) % 24).toBe(9);
  });
});
