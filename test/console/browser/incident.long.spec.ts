import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LimitDefinition } from '../../../lib/index.js';
import { browserOfSpec } from '../../support/browser/browser.js';
import { ConsolePage, Instances } from './console-page.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;
const IDENTITIES = 50_000;
const AT_ONCE = 500;
/** Whoever is refused, among all who are not. */
const NOISY = 'user:noisy';

const define: Record<string, LimitDefinition> = Object.fromEntries(
  Array.from({ length: 500 }, (_, index) => [`call-${index}`, { algo: 'gcra', rate: 5, interval: '1h', key: 'user' }]),
);

const browser = browserOfSpec();

describe('an incident among 500 limits and 50,000 identities', () => {
  let app: Instances;
  const over = new AbortController();
  let load: Promise<unknown>;

  beforeAll(async () => {
    app = await Instances.start(2, REDIS, { controllers: [], limits: { define }, console: { identities: 'plain' } });
    const limiters = app.apps.map(({ service }) => service);
    const ask = (from: number) =>
      Promise.all(
        Array.from({ length: AT_ONCE }, (_, index) =>
          limiters[index % 2]!.for(`call-${(from + index) % 500}`).consume(`user:${from + index}`),
        ),
      );
    for (let from = 0; from < IDENTITIES; from += AT_ONCE) await ask(from);
    const askOn = async (): Promise<void> => {
      for (let from = 0; !over.signal.aborted; from = (from + 50) % IDENTITIES) {
        await Promise.all(limiters.map((service) => service.for('call-250').consume(NOISY)));
        await Promise.all(limiters.map((service) => service.for(`call-${from % 500}`).consume(`user:${from}`)));
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    load = askOn();
  }, 120_000);
  afterAll(async () => {
    over.abort();
    await load;
    await app?.close();
  });

  it('takes four clicks at most, from the alert to a rate for a while', async () => {
    // An alert links to the limit: the first click.
    const opened = await ConsolePage.open(browser, `${app.url}#/limit/call-250`);
    const { page, complaints } = opened;
    await page.evaluate('addEventListener("click", () => { window.clicks = (window.clicks ?? 1) + 1; }, true)');
    const incidents = page.getByRole('region', { name: 'Active incidents' });
    const who = incidents.getByRole('group', { name: `Act on ${NOISY} in call-250` });
    await who.getByRole('button', { name: 'Raise', exact: true }).click();
    await opened.dialog.getByRole('button', { name: 'Raise' }).click();
    await opened.dialog.waitFor({ state: 'detached' });
    expect(await page.evaluate<number>('window.clicks')).toBeLessThanOrEqual(4);
    const raised = await app.apps[1]!.service.getRate('call-250', { key: NOISY });
    expect(raised).toMatchObject({ source: 'key', options: { rate: 10 } });
    expect(raised.override!.expiresAt! - Date.now()).toBeLessThanOrEqual(600_000);
    expect(complaints).toEqual([]);
  });
});
