import type { MarkdownRenderer } from 'vitepress';
import { fileOf } from './pages.js';

/** Those that differ most. The first page shows all. */
const TELLING = 'fixed-window,sliding-window,gcra,leaky-bucket';

/** Requests around the edge of a window show these best, bursts all others. */
const WINDOWS = ['fixed-window', 'calendar-window', 'sliding-window', 'sliding-log', 'budget'];

/** It learns from what it lets in, which the comparison doesn't simulate. */
export const NOT_COMPARED = ['adaptive'];

/**
 * Shows what algorithms do, without a word of it in the pages' files: each of them on its own page, before the example, and some
 * of them on the page that is about all.
 */
export function comparisons(md: MarkdownRenderer): void {
  md.core.ruler.push('comparisons', (state) => {
    const file = fileOf(state.env);
    const [, algorithm] = /^docs\/algorithms\/([\w-]+)\.md$/.exec(file) ?? [];
    if (algorithm === undefined || NOT_COMPARED.includes(algorithm)) return;
    const headings = state.tokens.flatMap(({ type, tag }, index) =>
      type === 'heading_open' && tag === 'h2' ? index : [],
    );
    const isOfAll = algorithm === 'README';
    const place = headings.find((index) => isOfAll || state.tokens[index + 1]!.content === 'Example');
    if (place === undefined)
      throw new Error(`${file} has no heading "Example", before which its comparison would stand`);
    const shown = new state.Token('html_block', '', 0);
    const pattern = isOfAll || WINDOWS.includes(algorithm) ? 'edge' : 'burst';
    shown.content = `<SluiceComparison algorithms="${isOfAll ? TELLING : algorithm}" pattern="${pattern}" />\n`;
    state.tokens.splice(place, 0, shown);
  });
}
