import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import MarkdownIt from 'markdown-it';
import type { MarkdownRenderer } from 'vitepress';
import { comparisons } from '../../docs/.vitepress/comparisons.js';
import { linksOfTheRepository } from '../../docs/.vitepress/links.js';
import { filesOfPages, pageOf } from '../../docs/.vitepress/pages.js';
import { picturesOfBothThemes } from '../../docs/.vitepress/pictures.js';
import { sidebar } from '../../docs/.vitepress/sidebar.js';
import { slug } from '../../docs/.vitepress/slug.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

function rendered(plugin: (md: MarkdownRenderer) => void, markdown: string, path: string): string {
  const md = new MarkdownIt({ html: true }) as unknown as MarkdownRenderer;
  plugin(md);
  return md.render(markdown, { path });
}

describe('a link of the repository', () => {
  const guide = join(PACKAGE_FOLDER, 'docs/guides/waiting.md');
  const inSite = (href: string): string | undefined =>
    /href="(.*?)"/.exec(rendered(linksOfTheRepository, `[x](${href})`, guide))?.[1];

  it.each([
    ['../start.md#install', '/start.md#install'],
    ['../../CONTRIBUTING.md', '/contributing.md'],
    ['blocking.md#blockfor', '/guides/blocking.md#blockfor'],
    ['../algorithms/README.md', '/algorithms/index.md'],
    ['#here', '#here'],
    ['https://example.com/a.md', 'https://example.com/a.md'],
    ['../grafana-dashboard.json', '/files/docs/grafana-dashboard.json'],
    ['../../lib/storage/stores/store.ts', '/files/lib/storage/stores/store.ts.txt'],
    ['../../LICENSE', '/files/LICENSE.txt'],
  ])('%s is %s in the site', (href, wanted) => {
    expect(inSite(href)).toBe(wanted);
  });

  it.each(['../../no.ts', '../../lua'])('%s, which is no file, is an error that names the page', (href) => {
    expect(() => inSite(href)).toThrow(
      `docs/guides/waiting.md: the link to ${href} leads to ${href.slice(6)}, which is not`,
    );
  });
});

describe('a picture that has a dark one beside it', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-pictures-'));
    for (const name of ['a-light.png', 'a-dark.png', 'b-light.png']) await writeFile(join(folder, name), '');
  });

  afterAll(() => rm(folder, { recursive: true }));

  const html =
    '<picture>\n<source media="(prefers-color-scheme: dark)" srcset="a-dark.png">\n' +
    '<img src="a-light.png" alt="A &quot;b&quot;">\n</picture>';

  it.each([
    ['HTML', html],
    ['Markdown', '![A "b"](a-light.png)'],
  ])('is shown in the colours of the site, from %s', (_, markdown) => {
    const html = rendered(picturesOfBothThemes, markdown, join(folder, 'page.md'));
    expect(html.match(/<img .*?>/g)).toEqual([
      '<img class="light-only" loading="lazy" src="a-light.png" alt="A &quot;b&quot;">',
      '<img class="dark-only" loading="lazy" src="a-dark.png" alt="A &quot;b&quot;">',
    ]);
    expect(html).not.toContain('<source');
  });

  it.each(['b-light.png', 'other.svg'])('%s has none', (source) => {
    const html = rendered(picturesOfBothThemes, `![x](${source})`, join(folder, 'page.md'));
    expect(html).toBe(`<p><img src="${source}" alt="x"></p>\n`);
  });
});

const GCRA = join(PACKAGE_FOLDER, 'docs/algorithms/gcra.md');

describe('the comparison on the page of an algorithm', () => {
  it('stands before the example', () => {
    const html = rendered(comparisons, '# gcra\n\n## When\n\n## Example\n\nx', GCRA);
    expect(html).toMatch(/When<\/h2>\s*<SluiceComparison algorithms="gcra" pattern="burst" \/>\s*<h2>Example/);
  });

  it('needs an example', () => {
    expect(() => rendered(comparisons, '# gcra\n\n## When', GCRA)).toThrow(
      'docs/algorithms/gcra.md has no heading "Example", before which its comparison would stand',
    );
  });
});

describe('the sidebar', () => {
  it('has each page once', () => {
    const links = sidebar().flatMap(({ items }) => items!.map(({ link }) => link!));
    const pages = filesOfPages().filter((file) => file !== 'docs/index.md');
    const wanted = pages.map((file) => `/${pageOf(file)!.replace(/(^|\/)index\.md$|\.md$/, '$1')}`);
    const ofPages = links.filter((link) => !link.includes('#') && !link.startsWith('/api/'));
    expect(ofPages.toSorted()).toEqual(wanted.toSorted());
  });

  it('names pages as the tables of docs/index.md do, or by their headings', () => {
    const names = new Map(sidebar().flatMap(({ items }) => items!.map(({ link, text }) => [link, text])));
    expect(names.get('/guides/explain')).toBe('Explaining limits');
    expect(names.get('/migrating-from-rate-limiter-flexible')).toBe('From rate-limiter-flexible');
    expect(names.get('/decisions/0003-the-servers-time')).toBe("3. The server's time");
  });
});

describe('a heading', () => {
  it.each([
    ['maxKeys and maxBytes', 'maxkeys-and-maxbytes'],
    ["In the module's options", 'in-the-modules-options'],
    ['decisions$', 'decisions'],
    ['10,000 keys, 1 in flight', '10000-keys-1-in-flight'],
  ])('%j has the anchor that hosts of repositories give it: %s', (heading, anchor) => {
    expect(slug(heading)).toBe(anchor);
  });
});
