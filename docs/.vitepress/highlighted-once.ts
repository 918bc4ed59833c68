import type { MarkdownRenderer } from 'vitepress';

/** Keeps the colours of each block of code: a page is rendered once to be shown, and once more to be searched. */
export function highlightedOnce(md: MarkdownRenderer): void {
  const highlight = md.options.highlight!;
  const known = new Map<string, string>();
  md.options.highlight = (...block) => {
    const key = JSON.stringify(block);
    const html = known.get(key) ?? highlight(...block);
    known.set(key, html);
    return html;
  };
}
