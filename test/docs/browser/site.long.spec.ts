import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NOT_COMPARED } from '../../../docs/.vitepress/comparisons.js';
import { filesOfPages, pageOf } from '../../../docs/.vitepress/pages.js';
import { problemsOfSite } from '../../../docs/.vitepress/check-links.mjs';
import { violationsOf, WCAG_AA } from '../../support/browser/axe.js';
import { browserOfSpec } from '../../support/browser/browser.js';
import { buildSite, serve } from './built-site.js';

const BASE = '/some/where/';

/** It only ends a build that hangs: one takes minutes where the machine has other things to do. */
const BUILD_LIMIT_MS = 600_000;

describe('the site of the documentation', () => {
  const browser = browserOfSpec();
  let site: string;
  let origin: string;
  let server: Server | undefined;
  let remove: () => Promise<void>;

  beforeAll(async () => {
    ({ site, remove } = await buildSite(BASE));
    ({ origin, server } = await serve(site, BASE));
  }, BUILD_LIMIT_MS);

  afterAll(async () => {
    await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
    await remove?.();
  });

  it('has a page for each file, and each page in its sidebar', () => {
    const files = filesOfPages();
    expect(files).toEqual(
      expect.arrayContaining(['docs/start.md', 'docs/guides/waiting.md', 'docs/algorithms/gcra.md']),
    );
    const linksOf = (html: string): string[] => {
      const [aside] = /<aside class="VPSidebar"[^]*?<\/aside>/.exec(readFileSync(join(site, html), 'utf8'))!;
      return [...aside.matchAll(/href="([^"#]*)/g)].map(([, href]) => href!);
    };
    for (const file of files) {
      const html = pageOf(file)!.replace(/\.md$/, '.html');
      expect([file, existsSync(join(site, html))]).toEqual([file, true]);
      if (file === 'docs/index.md') continue;
      expect([file, linksOf(html).includes(BASE + html.replace(/(^|\/)index\.html$/, '$1'))]).toEqual([file, true]);
    }
    expect(linksOf('start.html').length).toBeLessThanOrEqual(45);
  });

  it('has no link that leads nowhere, and loads nothing of another host', () => {
    // The reference of the API is made, and its links are checked, by another spec.
    const problems = problemsOfSite(site, BASE).filter((problem) => !problem.endsWith('api/index.html: no such file'));
    expect(problems).toEqual([]);
  });

  it('shows a page of each algorithm what it does', () => {
    const pages = readdirSync(join(site, 'algorithms')).map((file) => file.replace('.html', ''));
    const names = pages.filter((name) => name !== 'index' && !NOT_COMPARED.includes(name));
    expect(names).toHaveLength(9);
    for (const name of names) {
      const html = readFileSync(join(site, 'algorithms', `${name}.html`), 'utf8');
      expect(html).toContain(`<sluice-comparison algorithms="${name}"`);
    }
  });

  it('finds words without a server, and asks no other host', async () => {
    const { page, complaints } = await browser.open(origin + BASE);
    const asked = new Set<string>();
    page.on('request', (request) => asked.add(new URL(request.url()).origin));
    await page.goto(origin + BASE);
    // The page listens from when its scripts have drawn something.
    await page.getByText('worst minute').first().waitFor();
    await page
      .getByRole('button', { name: /search/i })
      .first()
      .click();
    await page.getByRole('searchbox').fill('departure slot');
    await page.locator('.VPLocalSearchBox .result', { hasText: 'leaky-bucket' }).first().click();

    await page.getByRole('heading', { level: 1, name: 'leaky-bucket' }).waitFor();
    await page.getByText('worst minute').first().waitFor();
    expect(asked).toEqual(new Set([origin]));
    expect(complaints).toEqual([]);
  });

  it.each([
    ['fail open', 'When Redis fails', 'when-redis-fails'],
    ['dry run', 'Shadow mode', 'shadow-mode'],
    ['allowlist', 'Lists', 'lists'],
    ['denylist', 'Lists', 'lists'],
    ['canary', 'Candidates', 'candidates'],
    ['dashboard', 'console', 'console'],
    ['quota', 'calendar-window', 'calendar-window'],
    ['ban', 'Blocking', 'blocking'],
    ['dynamic limits', 'Plans by tier', 'plans-by-tier'],
  ])('leads who looks for "%s" to %s', async (words, _title, place) => {
    const { page } = await browser.open(origin + BASE);
    await page.getByText('worst minute').first().waitFor();
    await page
      .getByRole('button', { name: /search/i })
      .first()
      .click();
    await page.getByRole('searchbox').fill(words);
    const results = page.locator('.VPLocalSearchBox .result');
    await results.first().waitFor();
    const places = await results.evaluateAll((all) =>
      all.slice(0, 3).map((one) => (one as unknown as { href: string }).href),
    );
    expect(places.join(' ')).toContain(`/${place}.html`);
  });

  it('sells on its first page: install, a figure, a picture and a move', async () => {
    const { page, complaints } = await browser.open(origin + BASE);
    await page.getByText('npm i nestjs-sluice').first().waitFor();
    await page.getByText(/^[\d.]+ to [\d.]+ × the decisions$/).waitFor();
    const image = page.locator('.home-pitch img');
    await image.scrollIntoViewIfNeeded();
    expect(await image.evaluate((one) => (one as unknown as { naturalWidth: number }).naturalWidth)).toBe(960);
    const move = await page.locator('.home-pitch .language-diff').textContent();
    expect(move).toContain('-  @Throttle({ default: { limit: 3, ttl: 60_000 } })');
    expect(move).toContain("+  @RateLimit({ name: 'default', algo: 'sliding-log', rate: 3, interval: '1m' })");
    expect(complaints).toEqual([]);
  });

  it('shows the package managers as tabs, and one block at a time', async () => {
    const { page } = await browser.open(origin + BASE + 'start.html');
    const group = page.locator('.vp-code-group').first();
    const yarn = group.locator('.blocks > div').nth(2);
    expect(await yarn.isVisible()).toBe(false);
    await group.locator('label', { hasText: 'yarn' }).click();
    await yarn.waitFor({ state: 'visible' });
    expect(await yarn.textContent()).toContain('yarn add nestjs-sluice');
  });

  it('has its pages as text for language models', () => {
    const text = readFileSync(join(site, 'llms.txt'), 'utf8');
    const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link!);
    expect(links.length).toBeGreaterThan(60);
    const files = links.map((link) => link.slice(BASE.length).replace(/\/$/, '/index.html'));
    expect(files.filter((file) => !existsSync(join(site, file)))).toEqual([]);
    expect(readFileSync(join(site, 'llms-full.txt'), 'utf8')).toContain('\n# Get started\n');
  });

  it.each([
    ['light', '', 'worst minute'],
    ['light', 'start.html', 'Protect a login'],
    ['dark', 'algorithms/gcra.html', 'worst minute'],
  ] as const)('lets everyone read it, %s, %j', async (colorScheme, path, text) => {
    const { page } = await browser.open(origin + BASE + path, { colorScheme });
    await page.getByText(text).first().waitFor();
    expect(await violationsOf(page, WCAG_AA)).toEqual([]);
  });
});
