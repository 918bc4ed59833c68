import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { violationsOf } from '../../support/browser/axe.js';
import { browserOfSpec } from '../../support/browser/browser.js';
import { type SampleApp, startSample } from '../../support/processes/sample-app.js';
import { until } from '../../support/time/until.js';

const browser = browserOfSpec();
let sample: SampleApp;

beforeAll(async () => {
  sample = await startSample({ REDIS_URL: '' });
});
afterAll(() => sample?.stop());

/** The page, with its routes and its comparison drawn. */
async function open(options: Parameters<typeof browser.open>[1] = {}) {
  const opened = await browser.open(sample.url, options);
  await opened.page.locator('.route').last().waitFor();
  await opened.page.locator('.card canvas').last().waitFor();
  return opened;
}

const routeOf = (page: Page, path: string) => page.getByRole('article', { name: new RegExp(`^\\S+ ${path}`) });
const cardOf = (page: Page, algorithm: string) => page.locator(`article[data-algorithm="${algorithm}"]`);
const numberOf = async (card: Locator, name: string) =>
  Number(await card.locator(`[data-number="${name}"]`).textContent());

describe('the page of the sample app', () => {
  it('loads without a complaint, from this app alone', async () => {
    const hosts = new Set<string>();
    const { page, complaints } = await open();
    page.on('request', (request) => hosts.add(new URL(request.url()).host));
    await page.reload();
    await page.locator('.card canvas').last().waitFor();
    expect(complaints).toEqual([]);
    expect([...hosts]).toEqual([new URL(sample.url).host]);
  });

  it('shows what a burst was answered, refusals included', async () => {
    const { page } = await open();
    const answers: number[] = [];
    page.on('response', (response) => {
      if (response.url().endsWith('/reports')) answers.push(response.status());
    });
    const route = routeOf(page, '/reports$');
    await route.getByRole('button', { name: 'Send 11' }).click();
    await route.getByText('1 refused').waitFor();
    expect(answers.toSorted((one, other) => one - other)).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
    expect(await route.getByText('10 allowed').count()).toBe(1);
    const meter = route.getByRole('meter', { name: 'Left of reports-minute' });
    expect(await meter.getAttribute('aria-valuenow')).toBe('0');
    expect(await meter.getAttribute('aria-valuemax')).toBe('10');
    await route.getByText(/refuses for \d+ s/).waitFor();
    expect(await page.locator('.answers li').count()).toBe(11);
    const refusal = page.locator('.answers li', { hasText: '429' });
    await refusal.getByText(/by reports-minute\. (Retry in \d+ s|Fits again)/).waitFor();
    await refusal.locator('summary').click();
    await refusal.getByText('retry-after').waitFor();
  });

  it('says what each route is sent as another user', async () => {
    const { page } = await open();
    const route = routeOf(page, '/forecast');
    await route.getByRole('button', { name: 'Send 4' }).click();
    await route.getByText('1 refused').waitFor();
    await page.getByLabel('User').fill('grace');
    await route.getByText('no request yet').first().waitFor();
    await route.getByRole('button', { name: 'Send one' }).click();
    await route.getByText('4 allowed').waitFor();
    await page.getByLabel('Plan').selectOption('pro');
    await route.getByRole('button', { name: 'Send one' }).click();
    const meter = route.getByRole('meter', { name: 'Left of forecast' });
    await page.waitForFunction(
      (element) => element?.getAttribute('aria-valuemax') === '20',
      await meter.elementHandle(),
    );
  });

  it('shows ten routes first, each with the code that limits it and a page about it, and the others on demand', async () => {
    const { page } = await open();
    expect(await page.locator('.route').count()).toBe(10);
    const route = routeOf(page, '/forecast');
    expect(await route.locator('pre').textContent()).toContain("algo: 'token-bucket', rate: 3, interval: '1m'");
    await page.getByRole('button', { name: 'Show 13 more routes' }).click();
    expect(await page.locator('.route').count()).toBe(23);
    expect(await page.locator('.route pre').count()).toBe(23);
    expect(await page.getByRole('button', { name: /more routes/ }).count()).toBe(0);
    await route.getByRole('link', { name: 'Docs: plans by tier' }).click();
    await page.getByText('# Plans by tier').first().waitFor();
  });

  it('refills bars as units come back', async () => {
    const { page } = await open();
    // Time stands still on the page, so that no unit comes back while the requests are under way.
    const now = Date.now();
    await page.clock.install({ time: now });
    await page.clock.pauseAt(now + 1000);
    const route = routeOf(page, '/search');
    await route.getByRole('button', { name: /^Send \d+$/ }).click();
    await route.getByText(/[1-9]\d* refused/).waitFor();
    const meter = route.getByRole('meter', { name: 'Left of search' });
    const left = async () => Number(await meter.getAttribute('aria-valuenow'));
    expect(await left()).toBe(0);
    // A unit each 6 seconds, 5 at most.
    await page.clock.runFor(13_000);
    await until(async () => (await left()) >= 2);
    expect(await left()).toBeLessThan(5);
    const { width: some } = (await route.locator('.fill').last().boundingBox())!;
    await page.clock.runFor(60_000);
    await until(async () => (await left()) === 5);
    await until(async () => ((await route.locator('.fill').last().boundingBox())?.width ?? 0) > some);
  });

  it('sends a steady flow until it is stopped', async () => {
    const { page } = await open();
    await page.getByRole('button', { name: 'Show 13 more routes' }).click();
    const route = routeOf(page, '/translations/usage');
    await route.getByRole('button', { name: '2 a second' }).click();
    await route.locator('[aria-pressed=true]').waitFor();
    await route.getByText(/[3-5] allowed/).waitFor();
    await page.getByRole('button', { name: 'Stop all flows' }).click();
    await route.locator('[aria-pressed=false]').waitFor();
  });
});

describe('the console of the sample', () => {
  it('is a link away, and shows visitors', async () => {
    const { page } = await open();
    await page.getByRole('link', { name: 'Console' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
    const allowed = page.locator('tr', { hasText: 'feed' }).locator('[data-label="Allowed"]');
    await until(async () => /^[1-9]/.test((await allowed.textContent()) ?? ''));
  });
});

describe('the comparison', () => {
  it('shows the double burst of windows at their edge, and that the sliding ones never pass the rate', async () => {
    const { page } = await open();
    for (const algorithm of ['fixed-window', 'calendar-window']) {
      const card = cardOf(page, algorithm);
      expect(await numberOf(card, 'worst')).toBe(19);
      expect(await card.getByText('1.9× the rate').count()).toBe(1);
    }
    for (const algorithm of ['sliding-window', 'sliding-log', 'leaky-bucket']) {
      expect(await numberOf(cardOf(page, algorithm), 'worst')).toBe(10);
    }
  });

  it('follows its controls', async () => {
    const { page } = await open();
    const slider = page.getByRole('slider', { name: 'Rate', exact: true });
    await slider.focus();
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(
      (card) => card?.shadowRoot?.querySelector('[data-number="worst"]')?.textContent === '21',
      await page.locator('sluice-comparison').elementHandle(),
    );
    await page.getByRole('radio', { name: 'Steady' }).check();
    const card = cardOf(page, 'sliding-log');
    expect((await numberOf(card, 'allowed')) + (await numberOf(card, 'refused'))).toBe(68);
    await page.getByRole('checkbox', { name: 'sliding-log' }).uncheck();
    expect(await card.count()).toBe(0);
  });

  it('takes traffic that is drawn, with the pointer and with keys', async () => {
    const { page } = await open();
    const canvas = page.getByRole('slider', { name: /^Traffic/ });
    await canvas.scrollIntoViewIfNeeded();
    const box = (await canvas.boundingBox())!;
    const before = await numberOf(cardOf(page, 'gcra'), 'refused');
    await page.mouse.move(box.x + box.width * 0.4, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 10);
    await page.mouse.up();
    expect(await page.getByRole('radio', { name: 'Drawn' }).isChecked()).toBe(true);
    expect(await numberOf(cardOf(page, 'gcra'), 'refused')).toBeGreaterThan(before);
    await canvas.focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowUp');
    expect(await canvas.getAttribute('aria-valuetext')).toBe('At 3.8 s: 1 request');
  });

  it('is played from its beginning', async () => {
    const { page } = await open();
    await page.clock.install({ time: 0 });
    await page.clock.pauseAt(3_600_000);
    await page.getByRole('button', { name: 'Play' }).click();
    // 2.5 seconds for each minute: the double burst lies behind, the next one does not.
    await page.clock.runFor(4500);
    const card = cardOf(page, 'calendar-window');
    expect([await numberOf(card, 'allowed'), await numberOf(card, 'refused')]).toEqual([20, 11]);
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.clock.runFor(100);
    expect([await numberOf(card, 'allowed'), await numberOf(card, 'refused')]).toEqual([40, 22]);
  });

  it('tells what is wrong with an attribute', async () => {
    const { page } = await open();
    await page.locator('sluice-comparison').evaluate((element) => element.setAttribute('algorithms', 'gcra,bucket'));
    const alert = page.locator('sluice-comparison').getByRole('alert');
    expect(await alert.textContent()).toContain(
      "<sluice-comparison>.algorithms: expected one of fixed-window, calendar-window, sliding-window, sliding-log, token-bucket, gcra, leaky-bucket, concurrency, budget, received 'bucket'",
    );
  });
});

describe('for everyone', () => {
  it('axe finds nothing, in light and in dark', async () => {
    const { page } = await open({ colorScheme: 'light' });
    await page.getByRole('button', { name: /^Show \d+ more/ }).click();
    const route = routeOf(page, '/reports/1');
    await route.getByRole('button', { name: /^Send \d+$/ }).click();
    await route.getByText(/[1-9]\d* refused/).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(11, 15, 20)');
    expect(await violationsOf(page)).toEqual([]);
  });

  it('keeps answers in sight on a phone', async () => {
    const { page } = await open({ viewport: { width: 390, height: 844 }, isMobile: true });
    for (const path of ['/exports\\?', '/orders']) {
      const send = routeOf(page, path).getByRole('button', { name: 'Send one' });
      await send.scrollIntoViewIfNeeded();
      await send.click();
      const answer = page.locator('.answers li', { hasText: path.replace(/\W+$/, '') }).first();
      await answer.waitFor();
      const box = (await answer.boundingBox())!;
      expect(box.y).toBeGreaterThan(0);
      expect(box.y + box.height).toBeLessThanOrEqual(844);
      expect((await send.boundingBox())!.y).toBeLessThan(box.y);
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  });

  it('fits on a phone', async () => {
    const { page } = await open({ viewport: { width: 360, height: 740 }, isMobile: true });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });
});
