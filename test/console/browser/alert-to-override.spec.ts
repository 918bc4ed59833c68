import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LimitDefinition } from '../../../lib/index.js';
import type { ConsoleAlert } from '../../../lib/console/index.js';
import { hashOf } from '../../../lib/telemetry/decision-event.js';
import { browserOfSpec } from '../../support/browser.js';
import { freshPrefix } from '../../support/stores.js';
import { until } from '../../support/until.js';
import { ConsolePage, Instances } from './console-page.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;
const LIMITS = 500;
const IDENTITIES = 50_000;
/** How many of them ask at once. */
const AT_ONCE = 2_000;
const MOST_CLICKS = 4;
/** The limit that hurts, and who is behind it. */
const HURT = 'service-33.call-3';
const WHO = 'user:loud';

const define: Record<string, LimitDefinition> = Object.fromEntries(
  Array.from({ length: LIMITS }, (_, index): [string, LimitDefinition] => [
    `service-${Math.floor(index / 10)}.call-${index % 10}`,
    { algo: 'gcra', rate: 5, interval: '1h', key: 'user' },
  ]),
);
const NAMES = Object.keys(define);

const browser = browserOfSpec();

describe('from an alert to a temporary override, with 500 limits and 50,000 clients on two instances', () => {
  const alerts: ConsoleAlert[] = [];
  let app: Instances;
  let isOver = false;
  let load: Promise<void>;

  /** Everybody asks once, and one client again and again. */
  async function ask(): Promise<void> {
    const [one, other] = app.apps.map(({ service }) => service);
    for (let first = 0; first < IDENTITIES && !isOver; first += AT_ONCE) {
      const clients = Array.from({ length: AT_ONCE }, (_, index) => first + index);
      await Promise.all(
        clients.map((client) =>
          (client % 2 === 0 ? one! : other!).for(NAMES[client % LIMITS]!).consume(`user:${client}`),
        ),
      );
      for (let call = 0; call < 20; call++) await other!.for(HURT).consume(WHO);
    }
    while (!isOver) {
      for (let call = 0; call < 10; call++) await one!.for(HURT).consume(WHO);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  beforeAll(async () => {
    app = await Instances.start(2, REDIS, {
      controllers: [],
      limits: { define, prefix: freshPrefix() },
      console: { alerts: { to: (alert: ConsoleAlert) => void alerts.push(alert), link: 'https://ops.example.com/' } },
    });
    load = ask();
  });
  afterAll(async () => {
    isOver = true;
    await load;
    await app?.close();
  });

  it(`takes ${MOST_CLICKS} clicks at most`, async () => {
    await until(() => alerts.some(({ limit, state }) => limit === HURT && state === 'began'), 120_000);
    const { link } = alerts.find(({ limit }) => limit === HURT)!;
    // The first click is on the link of the alert.
    let clicks = 1;
    const opened = await ConsolePage.open(browser, app.url + new URL(link!).hash);
    const { page, complaints } = opened;
    const who = page.getByRole('group', { name: `Act on ${hashOf(WHO)} in ${HURT}` });
    await who.getByRole('button', { name: 'Raise', exact: true }).click();
    clicks++;
    await opened.dialog.getByRole('button', { name: 'Raise' }).click();
    clicks++;
    await opened.dialog.waitFor({ state: 'detached' });
    expect(clicks).toBeLessThanOrEqual(MOST_CLICKS);
    for (const { service } of app.apps) {
      await until(async () => (await service.getRate(HURT, { key: WHO })).source === 'key');
      const { override } = await service.getRate(HURT, { key: WHO });
      expect(override!.expiresAt).toBeLessThanOrEqual(Date.now() + 600_000);
      expect(override!.reason).toEqual(expect.any(String));
    }
    expect(complaints).toEqual([]);
  });
});
