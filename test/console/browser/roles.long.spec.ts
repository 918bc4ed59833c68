import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { browserOfSpec } from '../../support/browser/browser.js';
import { THINGS } from '../console-app.js';
import { ConsolePage, Instances } from './console-page.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;

const browser = browserOfSpec();

/** Lets those on call act on keys. */
const ON_CALL: CanActivate = {
  canActivate: (context: ExecutionContext) =>
    context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-user'] === 'on-call',
};

describe('the page of the console for somebody who may act on keys alone', () => {
  let app: Instances;
  // The browser itself reports that the server says who may not write.
  let opened: ConsolePage;

  beforeAll(async () => {
    app = await Instances.start(1, REDIS, { limits: { define: { things: THINGS } }, console: { act: [ON_CALL] } });
    await app.send(1, 'bert');
    opened = await ConsolePage.open(browser, app.url, { extraHTTPHeaders: { 'x-user': 'on-call' } });
  });
  afterAll(() => app?.close());

  it('gives a key a rate of its own that ends, and takes it back at once', async () => {
    const { page, dialog } = opened;
    await page.getByText('You can act on keys for a limited time.').waitFor();
    await opened.lookUp('bert');
    const card = opened.card('things');
    await card.getByRole('button', { name: 'Set a rate for this key' }).click();
    await dialog.getByRole('textbox', { name: 'rate' }).fill('20');
    await dialog.getByRole('textbox', { name: 'Ends after' }).fill('');
    await dialog.getByLabel('Reason').fill('A launch');
    await dialog.getByRole('button', { name: 'Set the rate' }).click();
    await dialog.getByText('Ends after is missing.').waitFor();
    await dialog.getByRole('textbox', { name: 'Ends after' }).fill('10m');
    await dialog.getByRole('button', { name: 'Set the rate' }).click();
    await dialog.waitFor({ state: 'detached' });
    await card.getByRole('button', { name: 'Clear the rate of this key' }).waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await card.getByRole('button', { name: 'Clear the rate of this key' }).waitFor({ state: 'detached' });
    expect(opened.complaints.filter((each) => !each.endsWith('/api/write'))).toEqual([]);
  });

  it('offers nothing that holds for all, or has no end', async () => {
    const { page } = opened;
    const service = app.apps[0]!.service;
    await service.setRate('things', { rate: 30 }, { key: 'carl' });
    await service.allow({ identity: 'dora' });
    await service.deny({ identity: 'emil' }, { expiresIn: '1h' });
    await opened.lookUp('carl');
    await opened.card('things').getByRole('button', { name: 'Block', exact: true }).waitFor();
    expect(await opened.card('things').getByRole('button', { name: /rate/ }).count()).toBe(0);
    await opened.show('lists');
    await page.getByRole('button', { name: 'Add an entry' }).waitFor();
    await page.getByRole('button', { name: /^Remove .* from the deny list$/ }).waitFor();
    expect(await page.getByRole('button', { name: /^Remove .* from the allow list$/ }).count()).toBe(0);
    await opened.show('rates');
    await page.getByText('things').first().waitFor();
    expect(await page.getByRole('button', { name: 'Change the rate' }).count()).toBe(0);
    expect(opened.complaints.filter((each) => !each.endsWith('/api/write'))).toEqual([]);
  });
});
