import type { MarkdownRenderer } from 'vitepress';

/** Shows indented code as fenced code is shown: in a box that scrolls, so that long lines do not widen a phone's page. */
export function scrollingCode(md: MarkdownRenderer): void {
  md.core.ruler.push('scrolling-code', ({ tokens }) => {
    for (const token of tokens.filter(({ type }) => type === 'code_block')) {
      token.type = 'fence';
      token.tag = 'code';
      token.info = 'txt';
    }
  });
}
