import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { browserOfSpec } from '../../support/browser/browser.js';
import { THINGS } from '../console-app.js';
import { ConsolePage, Instances } from './console-page.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;
const browser = browserOfSpec();

describe('the deviations on the page of the console', () => {
  let app: Instances;
  let opened: ConsolePage;

  beforeAll(async () => {
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`limit-${index}`, THINGS]));
    app = await Instances.start(1, REDIS, {
      limits: { define: { things: THINGS, ...many } },
      console: { identities: 'plain', actor: () => 'ada@example.com' },
    });
    const { service, console } = app.apps[0]!;
    await Promise.all(Array.from({ length: 80 }, (_, index) => service.for('things').block(`key-${index}`, '1h')));
    await service.for('limit-7').block('anna', '2h');
    await service.setRate('things', { rate: 50 }, { key: 'bert', by: 'bo', reason: 'Trial' });
    await service.deny({ identity: 'carl' }, { reason: 'Fraud' });
    await console.recorder.flush();
    opened = await ConsolePage.open(browser, app.url);
  });
  afterAll(() => app?.close());

  it('are listed in pages, found by text and limit, and ended with a reason', async () => {
    const { page, dialog } = opened;
    await opened.show('deviations');
    const rows = page.getByRole('row');
    await rows.nth(25).waitFor();
    expect(await rows.count()).toBe(26);
    await page.getByText('Seen since').waitFor();
    const height = await page.evaluate<number>('document.documentElement.scrollHeight');
    expect(height).toBeLessThan(3 * 900);
    const pages = page.getByRole('navigation', { name: 'Pages of deviations' });
    // The other cells change with the time.
    const who = rows.nth(1).getByRole('rowheader');
    expect(await who.textContent()).toBe('anna');
    for (let turn = 0; turn < 3; turn++) {
      const before = (await who.textContent())!;
      await pages.getByRole('button', { name: 'Next' }).click();
      await who.filter({ hasNotText: before }).waitFor();
    }
    expect(await rows.count()).toBe(1 + 81 - 75);
    for (let turn = 0; turn < 3; turn++) await pages.getByRole('button', { name: 'Back' }).click();
    await who.filter({ hasText: 'anna' }).waitFor();

    await page.getByLabel('Find by key, author or reason').fill('anna');
    await rows.nth(2).waitFor({ state: 'detached' });
    await rows.nth(1).filter({ hasText: 'limit-7' }).waitFor();
    expect(await opened.kept()).not.toContain('anna');
    await page.getByRole('button', { name: 'Unblock: anna in limit-7' }).click();
    await dialog.getByLabel('Reason').fill('A mistake');
    await dialog.getByRole('button', { name: 'Unblock' }).click();
    await page.getByText('No matches').waitFor();
    expect((await app.apps[0]!.service.for('limit-7').peek('anna')).allowed).toBe(true);
    expect(opened.complaints).toEqual([]);
  });

  it('are overrides and entries of lists, too, by a link', async () => {
    const { page, dialog } = opened;
    await opened.show('overview');
    await opened.show('deviations?kind=overrides');
    const row = page.getByRole('row').filter({ hasText: 'rate: 50' });
    await row.getByText('Trial').waitFor();
    await row.filter({ hasText: /bo\s*Trial/ }).waitFor();
    await row.getByRole('button', { name: 'Clear: bert in things' }).click();
    await dialog.getByLabel('Reason').fill('The trial is over');
    await dialog.getByRole('button', { name: 'Clear' }).click();
    await page.getByText('No rate or mode is overridden').waitFor();
    await page.getByLabel('List entries').check();
    await page.getByRole('row').filter({ hasText: 'Fraud' }).getByText('deny list').waitFor();
    expect(page.url()).toContain('kind=lists');
    await page.getByLabel('Held units').check();
    await page.getByText('Nobody holds units').waitFor();
    expect(opened.complaints).toEqual([]);
  });
});
