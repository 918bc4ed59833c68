import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { llmsFullText, llmsText, llmsTextOfPackage } from '../../docs/.vitepress/llms.js';
import { indexed, WORDS } from '../../docs/.vitepress/words.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const md = {
  render: () => '<h1 id="lists" tabindex="-1">Lists <a class="header-anchor" href="#lists">x</a></h1>',
};
const lines = llmsText('/base/').split('\n');

describe('llms.txt', () => {
  it('begins with what the library is', () => {
    expect(lines.slice(0, 3)).toEqual(['# nestjs-sluice', '', expect.stringMatching(/^> Rate limiting for NestJS\. /)]);
  });

  it('has all guides, algorithms and the reference, with what they are about', () => {
    for (const page of ['start', 'guides/lists', 'algorithms/gcra', 'reference/calls', 'migrating-from-throttler']) {
      expect(lines.filter((line) => line.includes(`](/base/${page}.html): `))).toHaveLength(1);
    }
    expect(lines).toContain(
      '- [Allow and deny lists](/base/guides/lists.html): who is exempt from limits, and who is refused; also: allowlist, denylist, whitelist, blacklist, IP block',
    );
    expect(lines.filter((line) => line.startsWith('- ') && /: *$/.test(line))).toEqual([]);
    expect(lines.join('\n')).not.toContain('/decisions/');
  });
});

describe('llms.txt of the package', () => {
  const file = join(PACKAGE_FOLDER, 'llms.txt');
  // `UPDATE_LLMS=1 npm run jest -- test/docs/llms.spec.ts` writes it.
  if (process.env['UPDATE_LLMS'] === '1') writeFileSync(file, llmsTextOfPackage());

  it('lists the pages of today', () => {
    expect(readFileSync(file, 'utf8')).toBe(llmsTextOfPackage());
  });

  it('links to files', () => {
    const links = [...llmsTextOfPackage().matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link!);
    expect(links.length).toBeGreaterThan(60);
    expect(links.filter((link) => !existsSync(join(PACKAGE_FOLDER, link)))).toEqual([]);
  });
});

describe('SKILL.md', () => {
  it('names files of the package', () => {
    const named = [...readFileSync(join(PACKAGE_FOLDER, 'SKILL.md'), 'utf8').matchAll(/`((?:docs\/|llms)[\w./-]*)`/g)];
    expect(named.length).toBeGreaterThan(10);
    expect(named.map(([, path]) => path!).filter((path) => !existsSync(join(PACKAGE_FOLDER, path)))).toEqual([]);
  });
});

describe('llms-full.txt', () => {
  it('has the pages themselves', () => {
    const text = llmsFullText();
    for (const file of ['docs/start.md', 'docs/guides/lists.md', 'docs/algorithms/README.md']) {
      expect(text).toContain(readFileSync(join(PACKAGE_FOLDER, file), 'utf8').trim());
    }
  });
});

describe('words that people search for', () => {
  it('lead to pages that are there', () => {
    expect(Object.keys(WORDS).filter((file) => !existsSync(join(PACKAGE_FOLDER, file)))).toEqual([]);
    const all = Object.values(WORDS).flat();
    expect(all).toEqual(
      expect.arrayContaining(['fail open', 'dry run', 'allowlist', 'denylist', 'canary', 'dashboard', 'quota', 'ban']),
    );
    expect(new Set(all).size).toBe(all.length);
  });

  it('stand in the titles that the search knows', () => {
    const path = join(PACKAGE_FOLDER, 'docs/guides/lists.md');
    expect(indexed('', { path }, md)).toContain('>Lists · allowlist, denylist, whitelist, blacklist, IP block <a ');
    expect(indexed('', { path: join(PACKAGE_FOLDER, 'docs/guides/hooks.md') }, md)).toBe(md.render());
  });
});
