import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { problemsOfSite } from '../../docs/.vitepress/check-links.mjs';
import { npm, PACKAGE_FOLDER } from '../support/npm.js';
import { brokenLinks, filesNamedIn } from '../support/pages.js';

describe('the API reference', () => {
  // Rejects with all that is missing or wrong in the doc comments.
  it('is made without a warning, and its links lead somewhere', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-api-'));
    try {
      await npm(['run', 'docs:api', '--', '--out', folder], PACKAGE_FOLDER, 500_000);
      expect(existsSync(join(folder, 'index.html'))).toBe(true);
      expect(problemsOfSite(folder)).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('the pages of the repository', () => {
  const paths = [...listed('.'), ...listed('docs', { recursive: true }), ...listed('.github', { recursive: true })];
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
