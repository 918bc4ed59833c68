import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { browserOfSpec } from '../../support/browser/browser.js';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';

const PICTURE = join(PACKAGE_FOLDER, 'docs/picture.webp');
const SIZE = { width: 1280, height: 640 };

const read = (path: string): Buffer => readFileSync(join(PACKAGE_FOLDER, path));

/** The comparison as the playground and the site show it. */
const comparison = (): string => `<!doctype html>
<html lang="en" data-theme="light"><body style="margin: 0; padding: 24px; background: #fff">
<sluice-comparison algorithms="fixed-window,sliding-window,gcra,leaky-bucket" pattern="edge"></sluice-comparison>
<script type="module">${read('playground/dist/sluice-comparison.js').toString().replaceAll('</script', '<\\/script')}</script>
</body></html>`;

/** The console, whose picture is taken of three instances, and the comparison before it. */
const both = (playground: Buffer): string => `<!doctype html>
<html lang="en"><style>
  body { margin: 0; height: ${SIZE.height}px; overflow: hidden; background: linear-gradient(135deg, #0d4f4a, #0f766e 45%, #5eead4) }
  img { position: absolute; border-radius: 10px; box-shadow: 0 18px 50px #02211e8c }
</style><body>
<img style="left: 40px; top: 40px; width: 820px" src="data:image/png;base64,${read('docs/console/overview-light.png').toString('base64')}">
<img style="right: 40px; bottom: 40px; width: 560px" src="data:image/png;base64,${playground.toString('base64')}">
</body></html>`;

async function webpOf(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', {
    format: 'webp',
    quality: 50,
    // Pages show it no wider.
    clip: { x: 0, y: 0, ...SIZE, scale: 0.75 },
  });
  await session.detach();
  return Buffer.from(data, 'base64');
}

describe('the picture of the README', () => {
  if (process.env['UPDATE_SCREENSHOTS'] === '1') {
    const browser = browserOfSpec();

    it('is taken', async () => {
      const { page } = await browser.open('about:blank', { colorScheme: 'light' });
      await page.setViewportSize({ width: 900, height: 700 });
      await page.setContent(comparison());
      await page.locator('.card canvas').last().waitFor();
      await page.waitForTimeout(1_000);
      const playground = await page.screenshot();
      await page.setViewportSize(SIZE);
      await page.setContent(both(playground));
      await page.waitForFunction('[...document.images].every((image) => image.complete)');
      writeFileSync(PICTURE, await webpOf(page));
    });
  }

  it('is there, and small', () => {
    const file = readFileSync(PICTURE);
    expect(file.subarray(8, 12).toString()).toBe('WEBP');
    expect(statSync(PICTURE).size).toBeLessThan(30_000);
  });

  it.each(['README.md', 'docs/start/going-live.md'])('stands in %s, by a path that holds in the package', (page) => {
    const [, path] = /!\[[^\]]{20,}\]\(([^)]+)\)/.exec(readFileSync(join(PACKAGE_FOLDER, page), 'utf8'))!;
    expect(join(PACKAGE_FOLDER, page, '..', path!)).toBe(PICTURE);
  });
});
