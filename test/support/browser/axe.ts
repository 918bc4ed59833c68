import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';

const SCRIPT = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** For pages whose frame is not ours: what WCAG demands, without what is only good practice. */
export const WCAG_AA: RunOptions = { runOnly: ['wcag2a', 'wcag2aa'] };

/** What axe finds wrong with a page, shadow trees included: a line for each rule, with the elements. */
export async function violationsOf(page: Page, options: RunOptions = {}): Promise<string[]> {
  // Beside the page's policy, which lets no script of ours in.
  await page.evaluate(SCRIPT);
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(options)})`);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}
