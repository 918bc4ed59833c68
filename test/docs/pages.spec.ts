import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { brokenLinks, filesNamedIn } from '../support/pages.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

describe('the pages of the repository', () => {
  const paths = [
    ...listed('.'),
    ...listed('bench'),
    ...listed('bench/charts'),
    ...listed('docs', { recursive: true }),
    ...listed('.github', { recursive: true }),
  ];
  const pages = paths.filter((path) => path.endsWith('.md'));

  it('link to files and headings that are there', () => {
    expect(pages).toEqual(
      expect.arrayContaining(['CONTRIBUTING.md', 'docs/architecture.md', 'docs/decisions/README.md']),
    );
    expect(brokenLinks(pages, paths)).toEqual([]);
  });

  it('name files that are there', () => {
    const named = pages.flatMap((page) => filesNamedIn(page).map((file) => ({ page, file })));
    expect(named).toContainEqual({ page: 'docs/architecture.md', file: 'lib/storage/stores/store.ts' });
    expect(named.filter(({ file }) => !existsSync(join(PACKAGE_FOLDER, file)))).toEqual([]);
  });

  it('name scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as { scripts: object };
    const text = readFileSync(join(PACKAGE_FOLDER, 'CONTRIBUTING.md'), 'utf8');
    const named = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  it('list every decision', () => {
    const list = readFileSync(join(PACKAGE_FOLDER, 'docs/decisions/README.md'), 'utf8');
    const records = readdirSync(join(PACKAGE_FOLDER, 'docs/decisions')).filter((name) => name !== 'README.md');
    expect(records).not.toEqual([]);
    expect(records.filter((name) => !list.includes(`](${name})`))).toEqual([]);
  });
});

/** The files and folders of a folder, by their paths in the repository. */
function listed(folder: string, { recursive = false } = {}): string[] {
  return readdirSync(join(PACKAGE_FOLDER, folder), { recursive, encoding: 'utf8' }).map((name) => join(folder, name));
}
