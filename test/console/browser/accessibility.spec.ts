import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import { browserOfSpec } from '../../support/browser.js';
import { ConsolePage, Instances, VIEWS } from './console-page.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const PHONE = { width: 360, height: 740 };

/** The rules whose outcome depends on colours. */
const COLOURS = ['color-contrast', 'link-in-text-block'];

/** What axe finds on a page, each with the elements. */
async function findings({ page }: ConsolePage, rules?: readonly string[]): Promise<string[]> {
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: { type: 'rule', values: rules } }) };
  await page.evaluate(AXE);
  const { violations, passes } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(options)})`);
  expect(passes.map(({ id }) => id)).toContain('color-contrast');
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

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

  it.each([
    ['light', undefined],
    ['dark', COLOURS],
  ] as const)('has nothing that axe finds, in any view (%s)', async (colorScheme, rules) => {
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
