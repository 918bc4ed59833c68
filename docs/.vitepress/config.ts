import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { comparisons } from './comparisons.js';
import { diagrams } from './diagrams.js';
import { highlightedOnce } from './highlighted-once.js';
import { headingOfHome, withTitles } from './home.js';
import { copyLinkedFiles, linksOfTheRepository } from './links.js';
import { writeLlmsTexts } from './llms.js';
import { pageOf, REPOSITORY } from './pages.js';
import { picturesOfBothThemes } from './pictures.js';
import { scrollingCode } from './scrolling-code.js';
import { sidebar } from './sidebar.js';
import { slug } from './slug.js';
import { tabs } from './tabs.js';
import { indexed } from './words.js';

const { version, bugs } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
  version: string;
  bugs?: { url: string };
};
/** Where the repository is, such as `https://github.com/owner/name`. A release fills it in; `DOCS_REPOSITORY` names another one. */
const repository = process.env['DOCS_REPOSITORY'] ?? bugs?.url.replace(/\/issues$/, '');
const logo = `data:image/svg+xml,${encodeURIComponent(readFileSync(join(REPOSITORY, 'lib/console/page/logo.svg'), 'utf8'))}`;

const tokens = readFileSync(join(REPOSITORY, 'lib/console/page/tokens.css'), 'utf8');
const accent = /--accent: light-dark\((#\w+)/.exec(tokens)![1]!;

export default defineConfig({
  title: 'nestjs-sluice',
  description: 'Rate limiting for NestJS: all limits of a request decided in one atomic call, on Redis or in process',
  lang: 'en',
  base: baseOfEnvironment(),
  srcDir: '..',
  // Pages of the repository's root and of docs/, and no others. The site has a page of its own to start with.
  srcExclude: ['!(docs)/**/*', 'README.md', 'docs/.vitepress/**'],
  outDir: '../site',
  rewrites: (file) => pageOf(file) ?? file,
  head: [
    ['link', { rel: 'icon', href: logo }],
    ['meta', { name: 'theme-color', content: accent }],
  ],
  markdown: {
    anchor: { slugify: slug },
    languageAlias: { promql: 'sql' },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config(md) {
      highlightedOnce(md);
      linksOfTheRepository(md);
      headingOfHome(md);
      comparisons(md);
      diagrams(md);
      picturesOfBothThemes(md);
      scrollingCode(md);
      tabs(md);
    },
  },
  themeConfig: {
    logo,
    search: { provider: 'local', options: { _render: indexed } },
    sidebar: sidebar(),
    outline: [2, 3],
    nav: [
      { text: 'Get started', link: '/start' },
      { text: 'Algorithms', link: '/algorithms/', activeMatch: '^/algorithms/' },
      { text: 'API', link: '/api/index.html', target: '_self' },
      { text: 'Benchmarks', link: '/benchmarks' },
      { text: version, link: '/changelog' },
    ],
    externalLinkIcon: true,
    footer: { message: 'MIT license', copyright: 'Copyright © The nestjs-sluice authors' },
    ...(repository === undefined
      ? {}
      : {
          socialLinks: [{ icon: 'github' as const, link: repository }],
          editLink: { pattern: `${repository}/edit/main/:path`, text: 'Edit this page' },
        }),
  },
  transformPageData: withTitles,
  buildEnd({ outDir, site }) {
    copyLinkedFiles(outDir);
    writeLlmsTexts(outDir, site.base);
  },
});

/** The path of the site on its host: `/` unless `DOCS_BASE` says otherwise. */
function baseOfEnvironment(): string {
  const base = process.env['DOCS_BASE'] ?? '/';
  if (!/^\/(?:[\w.~-]+\/)*$/.test(base)) {
    throw new Error(
      `DOCS_BASE is ${JSON.stringify(base)}; wanted is a path such as '/' or '/sluice/', with both slashes`,
    );
  }
  return base;
}
