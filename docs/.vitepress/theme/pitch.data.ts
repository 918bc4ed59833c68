import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createMarkdownRenderer, type SiteConfig } from 'vitepress';
import { REPOSITORY } from '../pages.js';

declare const VITEPRESS_CONFIG: SiteConfig;

/** Excerpts of other pages that the first page shows. */
export interface Pitch {
  /** How it is installed, as HTML. */
  readonly install: string;
  /** The example of the page to start with, as HTML. */
  readonly example: string;
  /** The same app with `@nestjs/throttler` and with this, as HTML. */
  readonly migration: string;
  /** Decisions with 256 checks in flight, divided by those of the fastest other library: on a shared and on a quiet machine. */
  readonly ofPeers: { readonly shared: string; readonly quiet: string };
}

declare const data: Pitch;
export { data };

const START = join(REPOSITORY, 'docs/start.md');
const MIGRATING = join(REPOSITORY, 'docs/migrating-from-throttler.md');
const BENCHMARKS = join(REPOSITORY, 'docs/benchmarks.md');

export default {
  watch: [START, MIGRATING, BENCHMARKS],
  async load(): Promise<Pitch> {
    const { srcDir, markdown, site, logger } = VITEPRESS_CONFIG;
    const renderer = await createMarkdownRenderer(srcDir, markdown, site.base, logger);
    return {
      install: renderer.render('```sh\nnpm i nestjs-sluice\n```', { path: START }),
      example: renderer.render(found(START, /^```ts\n[^]*?^```/m), { path: START }),
      migration: renderer.render(found(MIGRATING, /^```diff\n[^]*?^```/m), { path: MIGRATING }),
      ofPeers: {
        quiet: found(BENCHMARKS, /(?<=^\| one limit, 10,000 keys, 256 in flight +\| \*\*)[\d.]+/m),
        shared: found(BENCHMARKS, /(?<=^\| one limit, 10,000 keys, 256 in flight .*\| \*\*)[\d.]+(?= ×\*\* +\|$)/m),
      },
    };
  },
};

function found(file: string, what: RegExp): string {
  const [text] = what.exec(readFileSync(file, 'utf8')) ?? [];
  if (text === undefined) throw new Error(`${file} has no match for ${what.source}, which the first page would show`);
  return text;
}
