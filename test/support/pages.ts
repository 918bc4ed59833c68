import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { PACKAGE_FOLDER } from './processes/npm.js';

const CODE = /^```[^]*?^```|`[^`\n]*`/gm;
const BLOCKS = /^```[^]*?^```/gm;

/** The files that a page links to, and the headings in them. */
function linksOf(page: string): [path: string, anchor: string][] {
  const text = read(page).replaceAll(CODE, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$/gm)].map(
    ([, inline, below]) => inline ?? below!,
  );
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = '', anchor = ''] = target.split('#');
      return [path === '' ? page : posix.join(posix.dirname(page), path), anchor];
    });
}

/** Links of pages to files that are not among `paths`, or to headings that these do not have. */
export function brokenLinks(pages: readonly string[], paths: readonly string[]): string[] {
  return pages.flatMap((page) =>
    linksOf(page)
      .filter(([path, anchor]) => !paths.includes(path) || (anchor !== '' && !anchorsOf(path).has(anchor)))
      .map(([path, anchor]) => `${page}: ${path}#${anchor}`),
  );
}

/** The files of the repository that a page names as code, such as `lib/index.ts`. */
export function filesNamedIn(page: string): string[] {
  const names = [
    ...read(page)
      .replaceAll(BLOCKS, '')
      .matchAll(/`((?:lib|lua|test|docs|bench)\/[\w./-]*)`/g),
  ];
  return names.map(([, name]) => name!);
}

/** What a heading is linked to by: its words in lower case, with hyphens between them. */
function anchorsOf(page: string): Set<string> {
  const headings = [
    ...read(page)
      .replaceAll(BLOCKS, '')
      .matchAll(/^#+ (.*)$/gm),
  ].map(([, heading]) => heading!);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

function read(page: string): string {
  return readFileSync(join(PACKAGE_FOLDER, page), 'utf8');
}
