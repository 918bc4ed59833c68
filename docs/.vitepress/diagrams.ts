import { renderMermaidSVG } from 'beautiful-mermaid';
import type { MarkdownRenderer } from 'vitepress';

const FETCHED_FONTS = /@import url\('.*?'\);/g;

/** Draws the code blocks of the language `mermaid` when the site is built, in the colours of the theme. */
export function diagrams(md: MarkdownRenderer): void {
  const fence = md.renderer.rules.fence!;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index]!;
    return info.trim() === 'mermaid' ? drawn(content) : fence(tokens, index, ...rest);
  };
}

function drawn(source: string): string {
  const svg = renderMermaidSVG(source, {
    bg: 'var(--vp-c-bg)',
    fg: 'var(--vp-c-text-1)',
    accent: 'var(--vp-c-brand-1)',
    transparent: true,
  });
  const ofItsOwn = svg.replace(
    /<style>([^]*?)<\/style>/,
    (_, rules: string) => `<style>.diagram {${rules.replaceAll(FETCHED_FONTS, '')}}</style>`,
  );
  // A template of Vue takes no style, but as a text.
  return `<figure class="diagram" v-html="${inAttribute(JSON.stringify(ofItsOwn))}"></figure>\n`;
}

function inAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
}
