import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { browserOfSpec } from '../../support/browser/browser.js';
import { until } from '../../support/time/until.js';
import { ConsolePage, FRAMEWORKS, Instances } from './console-page.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;

/** Who uses most is told each second, so what is asked more often shows it no sooner. */
const TO_BE_COUNTED_MS = 250;

const browser = browserOfSpec();

describe.each(FRAMEWORKS)('the page of the console on %s', (_framework, fastify) => {
  let app: Instances;

  beforeAll(async () => {
    app = await Instances.start(3, REDIS, { fastify });
  });

  afterAll(() => app?.close());

  it('shows as many decisions as there were requests, of all instances', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page, complaints } = opened;
    await page.getByText('Live', { exact: true }).waitFor();
    // One half before the numbers are on the page, and one that comes while one looks.
    const statuses = await app.send(15, 'anna');
    await opened.cellWith(/^10\s/, 'things', 'Allowed');
    statuses.push(...(await app.send(15, 'anna')));
    const refused = statuses.filter((status) => status === 429).length;
    expect(refused).toBe(20);
    await opened.cellWith(/^20\s/, 'things', 'Refused');
    expect(await opened.cell('things', 'Allowed')).toMatch(/^10\s/);
    expect(await opened.cell('things', 'Share refused')).toBe('67% of 30');

    // The same is told to who comes later.
    const later = await ConsolePage.open(browser, app.url);
    await later.cellWith(/^20\s/, 'things', 'Refused');
    expect(await later.cell('things', 'Allowed')).toMatch(/^10\s/);
    expect(await page.getByRole('region', { name: 'Instances' }).locator('tbody tr').count()).toBe(3);

    for (const range of ['1 hour', '1 day']) {
      await later.page.getByLabel(range).check();
      await later.cellWith(/^20\s/, 'things', 'Refused');
      expect(await later.cell('things', 'Allowed')).toMatch(/^10\s/);
    }
    await page.getByRole('application').first().focus();
    await page.keyboard.press('End');
    await page.locator('.tip').first().waitFor();
    expect(await page.locator('[aria-live=polite]').first().textContent()).toMatch(
      /:\d\d, Allowed [\d.]+, Refused [\d.]+/,
    );
    expect([...complaints, ...later.complaints]).toEqual([]);
  });

  it('shows who is refused most while one looks, and names who was looked up', async () => {
    const opened = await ConsolePage.open(browser, app.url);
    const { page, complaints } = opened;
    await opened.show('limit/things');
    const refused = page.getByRole('region', { name: 'Refused most' });
    await until(
      async () => {
        await app.send(4, 'anna');
        return (await refused.getByRole('listitem').count()) === 1;
      },
      60_000,
      TO_BE_COUNTED_MS,
    );
    expect(await refused.textContent()).not.toContain('anna');

    await opened.lookUp('anna');
    await opened.show('limit/things');
    await refused.getByRole('link', { name: 'anna' }).waitFor();
    expect(await opened.kept()).not.toContain('anna');
    expect(complaints).toEqual([]);
  });

  it('says that an address names a limit that is not there', async () => {
    const { page, complaints } = await ConsolePage.open(browser, `${app.url}#/limit/%3Cimg%3E`);
    await page.getByText('No limit has this name').waitFor();
    expect(complaints).toEqual([]);
  });

  it('shows limits that code gives, and identities as text', async () => {
    const hostile = '<img src=x onerror="document.title=1">';
    const plain = await Instances.start(1, REDIS, { fastify, console: { identities: 'plain', topKeys: 'always' } });
    try {
      const { service } = plain.apps[0]!;
      await service.for({ name: 'mails', algo: 'gcra', rate: 5, interval: '1h' }).consume('anna');
      const opened = await ConsolePage.open(browser, plain.url);
      const { page, complaints } = opened;
      await page.getByRole('row').filter({ hasText: 'mails' }).waitFor();
      await opened.show('limit/things');
      const used = page.getByRole('region', { name: 'Uses most' });
      await until(
        async () => {
          await service.for('things').consume(hostile);
          return (await used.getByRole('link', { name: hostile }).count()) === 1;
        },
        60_000,
        TO_BE_COUNTED_MS,
      );
      await used.getByRole('link', { name: hostile }).click();
      await page.getByRole('heading', { name: hostile, level: 2 }).waitFor();
      expect(await opened.kept()).not.toMatch(/onerror|%3Cimg/i);
      expect(await page.locator('img').count()).toBe(0);
      expect(complaints).toEqual([]);
    } finally {
      await plain.close();
    }
  });

  it('stops and goes on', async () => {
    const { page } = await ConsolePage.open(browser, app.url);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
  });
});
