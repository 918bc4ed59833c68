import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createMarkdownRenderer, type SiteConfig } from 'vitepress';
import { REPOSITORY } from '../pages.js';

declare const VITEPRESS_CONFIG: SiteConfig;

/** The example of the page to start with, as HTML. */
declare const data: string;
export { data };

const START = join(REPOSITORY, 'docs/start.md');

export default {
  watch: [START],
  async load(): Promise<string> {
    const [example] = /^```ts\n[^]*?^```/m.exec(readFileSync(START, 'utf8')) ?? [];
    if (example === undefined)
      throw new Error('docs/start.md has no example in TypeScript, which the first page would show');
    const { srcDir, markdown, site, logger } = VITEPRESS_CONFIG;
    const renderer = await createMarkdownRenderer(srcDir, markdown, site.base, logger);
    return renderer.render(example, { path: START });
  },
};
