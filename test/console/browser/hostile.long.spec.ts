import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LimiterService } from '../../../lib/index.js';
import { browserOfSpec } from '../../support/browser/browser.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { consoleOf } from '../console-app.js';
import { ConsolePage, Instances } from './console-page.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;
const PHONE = { width: 390, height: 844 };
const HTML = '<img src=x onerror="document.title=1">';
const REVERSING = 'eve\u202Ella rof';
const LONG = 'x'.repeat(2_000);
const HOSTILE = [HTML, REVERSING, LONG, '__proto__', 'a\0b', '\uD800', '👩‍💻', 'مرحبا'];

const browser = browserOfSpec();

describe('a console whose clients choose hostile identities', () => {
  let app: Instances;

  beforeAll(async () => {
    const define = { things: { algo: 'fixed-window', rate: 2, interval: '1d', key: 'global' } } as const;
    app = await Instances.start(1, REDIS, {
      limits: { define, prefix: freshPrefix() },
      console: { identities: 'plain' },
    });
    const { nest } = app.apps[0]!;
    const things = nest.get(LimiterService).for('things');
    // So many that none of the others is known.
    for (let other = 0; other < 20_000; other++) await things.consume(`other:${other}`);
    for (const identity of HOSTILE) for (let request = 0; request < 200; request++) await things.consume(identity);
    await consoleOf(nest).recorder.flush();
  });

  afterAll(() => app?.close());

  it('shows them as text, which neither runs nor hides what is around it', async () => {
    const opened = await ConsolePage.open(browser, app.url, { viewport: PHONE, hasTouch: true, isMobile: true });
    await opened.show('limit/things');
    await opened.page.getByText(HTML).first().waitFor();
    await opened.page.getByText('eve\\u{202e}lla rof').first().waitFor();
    await opened.lookUp('__proto__');
    for (const view of ['overview', 'limit/things', 'changes', 'lookup']) {
      await opened.show(view);
      const widths = await opened.page.evaluate<number[]>('[document.documentElement.scrollWidth, innerWidth]');
      expect([view, ...widths]).toEqual([view, PHONE.width, PHONE.width]);
      expect(await opened.page.locator('body').innerText()).not.toMatch(/[\u202A-\u202E\u2066-\u2069]/);
    }
    expect(await opened.page.title()).not.toBe('1');
    expect(opened.complaints).toEqual([]);
  });
});
