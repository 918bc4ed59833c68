import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import type { ConsolePage } from './console-page.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules whose outcome depends on colours. */
const COLOURS = ['color-contrast', 'link-in-text-block'];

/** The themes, each with the rules to look at: what does not depend on colours is looked at once. */
export const THEMES = [
  ['light', undefined],
  ['dark', COLOURS],
] as const;

/** What axe finds on a page, each with the elements. */
export async function findings({ page }: ConsolePage, rules?: readonly string[]): Promise<string[]> {
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: { type: 'rule', values: rules } }) };
  await page.evaluate(AXE);
  const { violations, passes } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(options)})`);
  expect(passes.map(({ id }) => id)).toContain('color-contrast');
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
