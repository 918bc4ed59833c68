import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';
import { fileOf, REPOSITORY } from './pages.js';

const PICTURE = /<picture>[^]*?<\/picture>/g;
const LIGHT = /-light\.(?=png$|svg$)/;

/**
 * Shows a picture `…-light.png` that has a `…-dark.png` next to it in the colours that were chosen for the site. The repository's
 * host goes by those of the system, as a `<picture>` does; its image is taken for the light one.
 */
export function picturesOfBothThemes(md: MarkdownRenderer): void {
  md.core.ruler.push('pictures-of-both-themes', ({ tokens, env }) => {
    const file = fileOf(env);
    for (const token of tokens) {
      if (token.type === 'html_block')
        token.content = token.content.replaceAll(PICTURE, (html) => both(html, file) ?? html);
      for (const child of token.children ?? []) {
        const html = child.type === 'image' ? both(imageOf(child.attrGet('src')!, child.content), file) : undefined;
        if (html === undefined) continue;
        child.type = 'html_inline';
        child.content = html;
      }
    }
  });
}

function both(html: string, file: string): string | undefined {
  const [, image = '', source = ''] = /(<img\s[^>]*?src="([^"]+)"[^>]*>)/.exec(html) ?? [];
  const dark = source.replace(LIGHT, '-dark.');
  if (dark === source || !existsSync(join(REPOSITORY, dirname(file), dark))) return undefined;
  const of = (theme: string, src: string): string =>
    image.replace(source, src).replace('<img', `<img class="${theme}-only" loading="lazy"`);
  return of('light', source) + of('dark', dark);
}

function imageOf(source: string, text: string): string {
  return `<img src="${source}" alt="${text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')}">`;
}
