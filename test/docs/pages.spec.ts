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
    ...listed('vectors'),
    ...listed('docs', { recursive: true }),
    ...listed('lib', { recursive: true }),
    ...listed('.github', { recursive: true }),
  ];
  const pages = paths.filter((path) => path.endsWith('.md'));

  it('link to files and headings that are there', () => {
    expect(pages).toEqual(
      expect.arrayContaining([
        'CONTRIBUTING.md',
        'docs/architecture.md',
        'docs/decisions/README.md',
        'lib/app/README.md',
      ]),
    );
    expect(brokenLinks(pages, paths)).toEqual([]);
  });

  it('name files that are there', () => {
    const named = pages.flatMap((page) => filesNamedIn(page).map((file) => ({ page, file })));
    expect(named).toContainEqual({ page: 'docs/architecture.md', file: 'lib/storage/stores/store.ts' });
    expect(named.filter(({ file }) => !existsSync(join(PACKAGE_FOLDER, file)))).toEqual([]);
  });

  it('say in ten minutes how the library is built', () => {
    const words = readFileSync(join(PACKAGE_FOLDER, 'docs/architecture.md'), 'utf8').split(/\s+/);
    expect(words.length).toBeLessThanOrEqual(1_800);
  });

  const districts = readdirSync(join(PACKAGE_FOLDER, 'lib'), { withFileTypes: true }).filter((each) =>
    each.isDirectory(),
  );

  it.each(districts.map(({ name }) => name))(
    'introduce lib/%s in at most 25 lines, by files that are there',
    (name) => {
      const folder = join(PACKAGE_FOLDER, 'lib', name);
      const text = readFileSync(join(folder, 'README.md'), 'utf8');
      expect(text.trim().split('\n').length).toBeLessThanOrEqual(25);
      const files = [...text.matchAll(/`([\w./-]+\.tsx?)`/g)].map(([, file]) => file!);
      expect(files.length).toBeGreaterThanOrEqual(3);
      expect(files.filter((file) => !existsSync(join(folder, file)))).toEqual([]);
    },
  );

  it('name scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as { scripts: object };
    const text = readFileSync(join(PACKAGE_FOLDER, 'CONTRIBUTING.md'), 'utf8');
    const named = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  it('show code within 40 words in every guide, and end after 900 in all but two', () => {
    const guides = readdirSync(join(PACKAGE_FOLDER, 'docs/guides')).map((name) => {
      const text = readFileSync(join(PACKAGE_FOLDER, 'docs/guides', name), 'utf8');
      const [before] = text.replace(/^# .*/, '').split('\n```');
      return { name, words: wordsOf(text), before: wordsOf(before!) };
    });
    expect(guides.length).toBeGreaterThan(40);
    expect(guides.filter(({ before }) => before > 40)).toEqual([]);
    expect(guides.filter(({ words }) => words > 900).length).toBeLessThanOrEqual(2);
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

function wordsOf(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length;
}
