import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import MarkdownIt from 'markdown-it';
import type { DefaultTheme, MarkdownRenderer } from 'vitepress';
import { comparisons } from '../../docs/.vitepress/comparisons.js';
import { linksOfTheRepository } from '../../docs/.vitepress/links.js';
import { filesOfPages, pageOf } from '../../docs/.vitepress/pages.js';
import { picturesOfBothThemes } from '../../docs/.vitepress/pictures.js';
import { sidebar } from '../../docs/.vitepress/sidebar.js';
import { slug } from '../../docs/.vitepress/slug.js';
import { tabs } from '../../docs/.vitepress/tabs.js';
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
  const all = sidebar();
  /** As VitePress chooses: the deepest place, and the first of several. */
  const places = Object.keys(all).toSorted((one, other) => other.split('/').length - one.split('/').length);
  const shownOn = (file: string) => {
    const items = all[places.find((place) => `/${pageOf(file)}`.startsWith(place))!] as DefaultTheme.SidebarItem[];
    return items.flatMap((item) => [item, ...(item.items ?? [])]);
  };

  it.each(filesOfPages().filter((file) => file !== 'docs/index.md'))('has the page that it is shown on: %s', (file) => {
    const link = `/${pageOf(file)!.replace(/(^|\/)index\.md$|\.md$/, '$1')}`;
    expect(shownOn(file).filter((item) => item.link === link)).toHaveLength(1);
  });

  it('has at most 45 entries on the pages that most people read', () => {
    expect(shownOn('docs/start.md').filter(({ link }) => link !== undefined).length).toBeLessThanOrEqual(45);
  });

  it('names pages as the tables of docs/index.md do, or by their headings', () => {
    const shown = Object.values(sidebar()).flatMap((items) => items as DefaultTheme.SidebarItem[]);
    const names = new Map(shown.flatMap(({ items }) => items ?? []).map(({ link, text }) => [link, text]));
    expect(names.get('/guides/explain')).toBe('Explaining limits');
    expect(names.get('/migrating-from-rate-limiter-flexible')).toBe('From rate-limiter-flexible');
    expect(names.get('/decisions/0003-the-servers-time')).toBe("3. The server's time");
  });
});

describe('blocks of code with labels', () => {
  const md = new MarkdownIt();
  tabs(md as unknown as MarkdownRenderer);
  const typesOf = (source: string) =>
    md.parse(source, {}).map(({ type }) => type.replace('container_code-group', 'tabs'));

  it('are tabs where they follow each other, and nowhere else', () => {
    const npm = '```sh [npm]\nnpm i a\n```\n\n';
    const pnpm = '```sh [pnpm]\npnpm add a\n```\n\n';
    const plain = '```sh\nls\n```\n\n';
    expect(typesOf(npm + pnpm + plain)).toEqual(['tabs_open', 'fence', 'fence', 'tabs_close', 'fence']);
    expect(typesOf(plain + npm)).toEqual(['fence', 'fence']);
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
