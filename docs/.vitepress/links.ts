import { copyFileSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';
import { fileOf, pageOf, REPOSITORY } from './pages.js';

/** Files that browsers show or save as they are. All others are shown as text. */
const KNOWN_KINDS = /\.(?:json|yaml|svg|png|txt)$/;

/** Files of the repository that pages link to and that aren't pages themselves. */
const linkedFiles = new Set<string>();

/** Turns links as they hold in the repository, such as `../reference/errors.md`, into those of the site. */
export function linksOfTheRepository(md: MarkdownRenderer): void {
  md.core.ruler.push('links-of-the-repository', ({ tokens, env }) => {
    const from = fileOf(env);
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null;
      if (href !== null) token.attrSet('href', inSite(href, from));
    }
  });
}

function inSite(href: string, from: string): string {
  const [, path = '', anchor = ''] = /^([^#]*)(#.*)?$/.exec(href) ?? [];
  if (path === '' || /^[a-z]+:/.test(path)) return href;
  const file = posix.join(posix.dirname(from), decodeURI(path));
  const page = pageOf(file);
  if (page !== undefined) return `/${page}${anchor}`;
  if (!statSync(join(REPOSITORY, file), { throwIfNoEntry: false })?.isFile()) {
    throw new Error(`${from}: the link to ${href} leads to ${file}, which is not a file of the repository`);
  }
  linkedFiles.add(file);
  return `/${placeOf(file)}`;
}

function placeOf(file: string): string {
  return `files/${file}${KNOWN_KINDS.test(file) ? '' : '.txt'}`;
}

/** Puts the files that pages link to next to the pages. */
export function copyLinkedFiles(siteFolder: string): void {
  for (const file of linkedFiles) {
    const copy = join(siteFolder, placeOf(file));
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(join(REPOSITORY, file), copy);
  }
}
