import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { browserOfSpec } from '../../support/browser/browser.js';
import { until } from '../../support/time/until.js';
import { THINGS } from '../console-app.js';
import { ConsolePage, FRAMEWORKS, Instances } from './console-page.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;

const browser = browserOfSpec();

describe.each(FRAMEWORKS)('changes on the page of the console on %s', (_framework, fastify) => {
  let app: Instances;
  let opened: ConsolePage;

  beforeAll(async () => {
    // So many that what the instances tell each other may take its time.
    const define = { things: { ...THINGS, rate: 1_000 } };
    app = await Instances.start(2, REDIS, {
      fastify,
      limits: { define },
      console: { actor: () => 'ada@example.com' },
    });
    opened = await ConsolePage.open(browser, app.url);
  });

  beforeEach(() => opened.show('overview'));

  afterAll(() => app?.close());

  it('a block refuses the next request of that key, and stands in the log', async () => {
    const { page, dialog } = opened;
    expect(await app.send(2, 'bert')).toEqual([200, 200]);
    await opened.lookUp('bert');
    await opened.card('things').getByRole('button', { name: 'Block', exact: true }).click();
    await dialog.getByLabel('Reason').fill('Guesses passwords');
    await dialog.getByRole('button', { name: 'Block', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await opened.card('things').getByText('blocked', { exact: true }).waitFor();
    expect(await app.send(4, 'bert')).toEqual([429, 429, 429, 429]);
    expect(await app.send(1, 'carl')).toEqual([200]);

    await opened.card('things').getByRole('button', { name: 'Unblock' }).click();
    await dialog.getByLabel('Reason').fill('It was a colleague');
    await dialog.getByRole('button', { name: 'Unblock' }).click();
    await opened.card('things').getByRole('button', { name: 'Unblock' }).waitFor({ state: 'detached' });
    await until(async () => (await app.send(2, 'bert')).every((status) => status === 200));

    await opened.show('changes');
    const log = page.getByRole('region', { name: 'Log' });
    await log.getByText('Guesses passwords').waitFor();
    await log.getByText('It was a colleague').waitFor();
    expect(await log.getByText('ada@example.com').count()).toBe(2);
    expect(opened.complaints).toEqual([]);
  });

  it('are possible with the keyboard alone', async () => {
    const { page, dialog } = opened;
    const focused = (): Promise<string> =>
      page.evaluate<string>('document.activeElement.textContent || document.activeElement.getAttribute("name") || ""');
    const tabTo = async (text: string, within: string): Promise<void> => {
      for (let presses = 0; presses < 60; presses++) {
        await page.keyboard.press('Tab');
        const isWithin = await page.locator(`${within} :focus`).count();
        if (isWithin > 0 && (await focused()) === text) return;
      }
      throw new Error(`${text} is not reached by the tabulator`);
    };
    await page.reload();
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the content');
    await tabTo('Look-up', 'nav');
    await page.keyboard.press('Enter');
    // A new view moves the focus to its heading, possibly after it is visible.
    await page.locator('h1:focus', { hasText: 'Look-up' }).waitFor();
    await tabTo('identity', 'main');
    await page.keyboard.type('dora');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'dora' }).waitFor();
    await tabTo('Block', '.state:has([href="#/limit/things"])');
    await page.keyboard.press('Enter');
    await dialog.waitFor();
    expect(await focused()).toBe('duration');
    // The focus stays within the dialog.
    await tabTo('Cancel', 'dialog');
    await tabTo('reason', 'dialog');
    await page.keyboard.type('With the keyboard');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    expect(await focused()).toMatch(/^Block/);
    expect(await app.send(2, 'dora')).toEqual([429, 429]);

    await page.keyboard.press('Enter');
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await focused()).toMatch(/^Block/);
  });

  it('show what is wrong beside the field, and change nothing', async () => {
    const { page, dialog } = opened;
    await opened.show('rates');
    await opened.card('things').getByRole('button', { name: 'Change the rate' }).click();
    await dialog.getByLabel('Rate (units)').fill('many');
    await dialog.getByRole('button', { name: 'Change the rate' }).click();
    const reason = dialog.getByLabel('Reason');
    expect(await reason.getAttribute('aria-invalid')).toBe('true');
    await reason.fill('A test');
    await dialog.getByRole('button', { name: 'Change the rate' }).click();
    const field = dialog.getByLabel('Rate (units)');
    await dialog.getByText(/many/).waitFor();
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    const described = (await field.getAttribute('aria-describedby'))!.split(' ')[0]!;
    expect(await page.locator(`[id="${described}"]`).textContent()).toContain('many');
    expect(await reason.getAttribute('aria-invalid')).toBeNull();

    await field.fill('3');
    await dialog.getByRole('button', { name: 'Change the rate' }).click();
    await dialog.waitFor({ state: 'detached' });
    await opened.card('things').getByText('changed', { exact: true }).waitFor();
    await until(async () => (await app.send(2, 'emil')).every((status) => status === 429));
  });

  it('show the identity that was typed as text, and keep it nowhere', async () => {
    const { page, complaints } = opened;
    const hostile = '<img src=x onerror="document.title=1">';
    const before = complaints.length;
    await opened.lookUp(hostile);
    await opened.card('things').getByRole('button', { name: 'Block', exact: true }).click();
    await opened.dialog.getByText(hostile).waitFor();
    await opened.dialog.getByLabel('Reason').fill('<b>bold</b>');
    await opened.dialog.getByRole('button', { name: 'Block', exact: true }).click();
    await opened.dialog.waitFor({ state: 'detached' });
    expect(await opened.kept()).not.toMatch(/onerror|%3Cimg/i);
    await opened.show('changes');
    await page.getByText('<b>bold</b>').waitFor();
    expect(await page.locator('img, main b').count()).toBe(0);
    expect(complaints.slice(before)).toEqual([]);
  });

  it('are not offered to those who may only look', async () => {
    const looking = await ConsolePage.open(browser, app.url, { extraHTTPHeaders: { 'x-user': 'ops' } });
    const { page } = looking;
    await looking.lookUp('bert');
    await page.getByText(/You can view, but not change:/).waitFor();
    expect(await looking.card('things').getByRole('button').count()).toBe(0);
    await looking.show('rates');
    expect(await looking.card('things').getByRole('button').count()).toBe(0);
    await looking.show('lists');
    expect(await page.getByRole('button', { name: 'Add an entry' }).count()).toBe(0);
  });

  it('of lists and candidates do what they say', async () => {
    const { page, dialog, complaints } = opened;
    const before = complaints.length;
    await opened.show('lists');
    await page.getByRole('button', { name: 'Add an entry' }).click();
    await dialog.getByLabel('Identity').fill('gustav');
    await dialog.getByLabel('Reason').fill('Abuse');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('row').filter({ hasText: 'Abuse' }).waitFor();
    await until(async () => (await app.send(1, 'gustav'))[0] === 403);

    await page.getByRole('button', { name: /^Remove / }).click();
    await dialog.getByLabel('Reason').fill('He said sorry');
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('Nobody is on a list').waitFor();
    await until(async () => (await app.send(1, 'gustav'))[0] === 200);

    await opened.show('rates');
    await opened.card('things').getByRole('button', { name: 'Preview a rate' }).click();
    await dialog.getByLabel('Rate (units)').fill('1');
    await dialog.getByLabel('Reason').fill('What if?');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await opened.card('things').getByText('has a candidate').waitFor();
    await app.send(2, 'helga');
    // The page asks for the rates anew only now and then.
    const shares = opened.card('things').getByText(/^[\d,]+ of [\d,]+ \(/);
    await shares.nth(1).waitFor();
    await opened
      .card('things')
      .getByRole('button', { name: /^Enforce / })
      .click();
    await dialog.getByLabel('Reason').fill('It is right');
    await dialog.getByRole('button', { name: 'Enforce' }).click();
    await opened.card('things').getByText('has a candidate').waitFor({ state: 'detached' });

    await opened.show('changes');
    await page
      .getByRole('button', { name: /^Roll back/ })
      .first()
      .click();
    await dialog.getByLabel('Reason').fill('It was not');
    await dialog.getByRole('button', { name: 'Roll back' }).click();
    await page.getByText('It was not').waitFor();
    expect(complaints.slice(before)).toEqual([]);
  });

  it('undoes a change from its message, and lists what a rollback would undo', async () => {
    const { service } = app.apps[0]!;
    const { page } = opened;
    await service.clearRate('things');
    await opened.show('rates');
    await opened.card('things').getByRole('button', { name: 'Change the rate' }).click();
    await opened.dialog.getByLabel(/^Rate/).first().fill('77');
    await opened.dialog.getByLabel('Reason').fill('Launch');
    await opened.dialog.getByRole('button', { name: 'Change the rate' }).click();
    await page.getByText(/things: gcra:\d+\/1h → gcra:77\/1h/).waitFor();
    await page.getByRole('button', { name: 'Undo', exact: true }).last().click();
    await page.getByText('things is as it was before.').waitFor();
    expect((await service.getRate('things')).options).not.toMatchObject({ rate: 77 });

    await service.setRate('things', { rate: 5 }, { by: 'ada@example.com', reason: 'Too many' });
    await opened.show('changes');
    await page.getByText(/ada@example.com changed the rate of things from .* to rate: 5: Too many\./).waitFor();
    await page
      .getByRole('button', { name: /^Roll back/ })
      .first()
      .click();
    await opened.dialog.getByText(/^the rate of things from rate: 5 to /).waitFor();
    await service.setRate('things', { rate: 6 });
    await opened.dialog.getByLabel('Reason').fill('Calm again');
    await opened.dialog.getByRole('button', { name: 'Roll back' }).click();
    await opened.dialog.getByText(/Check again what this undoes/).waitFor();
    await opened.dialog.getByRole('button', { name: 'Cancel' }).click();
  });
});
