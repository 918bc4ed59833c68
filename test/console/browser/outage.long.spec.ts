import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { browserOfSpec } from '../../support/browser/browser.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { until } from '../../support/time/until.js';
import { ConsoleApp } from '../console-app.js';
import { ConsolePage, FRAMEWORKS, Instances } from './console-page.js';

const browser = browserOfSpec();

describe.each(FRAMEWORKS)('the page of the console on %s', (_framework, fastify) => {
  let redis: RedisServer;
  let app: Instances;

  beforeAll(async () => {
    redis = await startRedis();
    app = await Instances.start(3, redis.url, { fastify, limits: { timeout: '2s' } });
  });

  afterAll(async () => {
    await app?.close();
    await redis?.stop();
  });

  it('says that Redis is gone, and comes back by itself', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page } = opened;
    await page.getByText('answers', { exact: true }).waitFor();
    const banner = page.locator('.banner');
    expect(await banner.count()).toBe(0);

    await redis.kill();
    await banner.waitFor();
    expect(await banner.textContent()).toMatch(/Redis/);
    await page.getByText('does not answer', { exact: true }).waitFor();

    await opened.lookUp('user:frida');
    const unread = opened.card('things');
    await unread.getByText('not known').first().waitFor();
    expect(await unread.getByText('now', { exact: true }).count()).toBe(0);
    expect(await page.getByText('free', { exact: true }).count()).toBe(0);
    await unread.getByRole('button', { name: 'Refund', exact: true }).click();
    await opened.dialog.getByLabel('Reason').fill('A wrong charge');
    await opened.dialog.getByRole('button', { name: 'Refund', exact: true }).click();
    await opened.dialog.getByRole('alert').first().waitFor();
    expect(await page.getByText(/got units back/).count()).toBe(0);
    await opened.dialog.getByRole('button', { name: 'Cancel' }).click();
    await opened.show('changes');
    await page.getByText('The log could not be loaded').waitFor();
    expect(await page.getByText('Nothing was changed yet').count()).toBe(0);
    await opened.show('lists');
    await page.getByText('The lists could not be loaded').waitFor();
    expect(await page.getByText('Nobody is on a list').count()).toBe(0);
    await opened.show('limit/things');
    await page.getByText('The counts of the other instances could not be read').first().waitFor();
    expect(await page.getByText('Nobody was refused').count()).toBe(0);
    await opened.show('overview');
    await page.getByText(/in the instance that serves this page; the others could not be read/).waitFor();
    expect(await page.getByText(/all instances together/).count()).toBe(0);

    await redis.start();
    await banner.waitFor({ state: 'detached' });
    await page.getByText('answers', { exact: true }).waitFor();
    const before = await opened.cell('things', 'Allowed');
    await app.send(3, 'frida');
    await until(async () => (await opened.cell('things', 'Allowed')) !== before, 60_000, 250);
  });

  it('says that the app is gone, and comes back by itself', async () => {
    const alone = await ConsoleApp.start({ fastify });
    const port = Number(new URL(alone.url).port);
    const { page } = await ConsolePage.open(browser, `${alone.url}/ops/limits`);
    await page.getByText('Live', { exact: true }).waitFor();
    await alone.close();
    await page.getByText(/The app doesn't respond/).waitFor();
    const again = await ConsoleApp.start({ fastify, port });
    try {
      await page.getByText('Live', { exact: true }).waitFor();
      expect(await page.locator('.banner').count()).toBe(0);
    } finally {
      await again.close();
    }
  });
});
