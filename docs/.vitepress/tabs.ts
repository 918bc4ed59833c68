import type { MarkdownRenderer } from 'vitepress';

const LABEL = /\[[^\]]+\]\s*$/;

/** Shows blocks of code with a label, such as "sh [npm]", as tabs if they follow each other. Elsewhere they are blocks in a row. */
export function tabs(md: MarkdownRenderer): void {
  md.core.ruler.push('tabs', (state) => {
    const { tokens } = state;
    const isTab = (index: number): boolean => tokens[index]?.type === 'fence' && LABEL.test(tokens[index].info);
    const all: typeof tokens = [];
    for (let index = 0; index < tokens.length; index++) {
      const isGrouped = isTab(index) && isTab(index + 1);
      if (!isGrouped) {
        all.push(tokens[index]!);
        continue;
      }
      all.push(new state.Token('container_code-group_open', 'div', 1));
      for (; isTab(index); index++) all.push(tokens[index]!);
      index--;
      all.push(new state.Token('container_code-group_close', 'div', -1));
    }
    state.tokens = all;
  });
}
