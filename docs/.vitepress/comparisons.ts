import type { MarkdownRenderer } from 'vitepress';
import { fileOf } from './pages.js';

/** Requests around the edge of a window show these best, bursts all others. */
const WINDOWS = ['fixed-window', 'calendar-window', 'sliding-window', 'sliding-log'];

/** Shows what each algorithm does on its page, before the example, without a word of it in the page's file. */
export function comparisons(md: MarkdownRenderer): void {
  md.core.ruler.push('comparisons', (state) => {
    const file = fileOf(state.env);
    const [, algorithm] = /^docs\/algorithms\/([a-z-]+)\.md$/.exec(file) ?? [];
    if (algorithm === undefined) return;
    const example = state.tokens.findIndex(({ type, content }) => type === 'inline' && content === 'Example');
    if (example === -1) throw new Error(`${file} has no heading "Example", before which its comparison would stand`);
    const shown = new state.Token('html_block', '', 0);
    const pattern = WINDOWS.includes(algorithm) ? 'edge' : 'burst';
    shown.content = `<SluiceComparison algorithms="${algorithm}" pattern="${pattern}" />\n`;
    // A heading is three tokens: its begin, its text, its end.
    state.tokens.splice(example - 1, 0, shown);
  });
}
