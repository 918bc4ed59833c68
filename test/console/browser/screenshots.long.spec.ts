import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { browserOfSpec, type SpecBrowser } from '../../support/browser/browser.js';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';
import { startRedis } from '../../support/redis/redis-servers.js';
import { ADMIN, ConsolePage, Instances } from './console-page.js';
import { letClientsAsk, SHOP } from './demo-shop.js';

const FOLDER = process.env['SCREENSHOT_FOLDER'] ?? join(PACKAGE_FOLDER, 'docs/console');
/** The views, and how tall their pictures are. */
const PICTURES = {
  overview: { view: 'overview', height: 1020 },
  limit: { view: 'limit/search', height: 860 },
  levels: { view: 'limit/team', height: 860 },
  tenants: { view: 'limit/renders', height: 760 },
  lookup: { view: 'lookup', height: 800 },
  deviations: { view: 'deviations', height: 620 },
  rates: { view: 'rates', height: 760 },
  lists: { view: 'lists', height: 560 },
  changes: { view: 'changes', height: 620 },
} as const;
const NAMES = Object.keys(PICTURES) as (keyof typeof PICTURES)[];
const THEMES = ['light', 'dark'] as const;
/** What is to be at the top of some pictures. */
const AT_TOP: Partial<Record<keyof typeof PICTURES, string>> = { levels: 'levels', tenants: 'tenants' };
const MINUTES_5 = Number(process.env['SCREENSHOT_SECONDS'] ?? 310) * 1_000;

const isAsked = process.env['UPDATE_SCREENSHOTS'] === '1';

async function take(browser: SpecBrowser, url: string): Promise<void> {
  for (const colorScheme of THEMES) {
    const opened = await ConsolePage.open(browser, url, { ...ADMIN, colorScheme });
    const { page } = opened;
    for (const picture of NAMES) {
      const { view, height } = PICTURES[picture];
      await page.setViewportSize({ width: 1280, height });
      await opened.show(view);
      if (picture === 'lookup') await opened.lookUp('user:40');
      // Numbers of the first seconds, and what moves in, settle.
      await page.waitForTimeout(2_500);
      await page.mouse.move(0, 0);
      const top = AT_TOP[picture];
      if (top !== undefined) await page.evaluate(`document.getElementById('${top}').scrollIntoView()`);
      writeFileSync(join(FOLDER, `${picture}-${colorScheme}.png`), await pictureOf(page));
    }
  }
}

/** A small picture: Playwright's own are made fast, and a third larger. */
async function pictureOf(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'png', optimizeForSpeed: false });
  await session.detach();
  return Buffer.from(data, 'base64');
}

describe('the pictures of the console', () => {
  if (isAsked) {
    const browser = browserOfSpec();

    it('are taken', async () => {
      mkdirSync(FOLDER, { recursive: true });
      const redis = await startRedis();
      const apps = await Instances.start(3, redis.url, {
        controllers: [],
        limits: { ...SHOP, prefix: 'shop' },
        console: { actor: () => 'ada@example.com', topKeys: 'always' },
      });
      let isOver = false;
      const [app] = apps.apps;
      await app!.service.setRate('api', { rate: 30 }, { by: 'grace@example.com', reason: 'More room for the sale' });
      await app!.change('rates/set', {
        limit: 'checkout',
        patch: { burst: 90 },
        expiresIn: '2h',
        reason: 'Launch day',
      });
      await app!.service.allow({ ip: '192.0.2.0/24' }, { by: 'grace@example.com', reason: 'Health checks' });
      const block = { limit: 'checkout', identity: 'user:40', duration: '1h', reason: 'Tries stolen cards' };
      const clients = letClientsAsk(apps.apps, 2 * MINUTES_5, () => isOver);
      try {
        await new Promise((resolve) => setTimeout(resolve, MINUTES_5));
        await app!.change('keys/block', block);
        await take(browser, apps.url);
      } finally {
        isOver = true;
        await clients;
        await apps.close();
        await redis.stop();
      }
    });
  }

  it.each(NAMES.flatMap((picture) => THEMES.map((theme) => [`${picture}-${theme}`])))(
    '%s is there, and small',
    (name) => {
      const png = readFileSync(join(FOLDER, `${name}.png`));
      expect(png.subarray(1, 4).toString()).toBe('PNG');
      expect(png.readUInt32BE(16)).toBe(1280);
      expect(png.length).toBeLessThan(200_000);
    },
  );
});
