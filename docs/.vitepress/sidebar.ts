import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DefaultTheme } from 'vitepress';
import { filesOfPages, headingOf, pageOf, REPOSITORY } from './pages.js';

type Item = DefaultTheme.SidebarItem;

interface Group {
  readonly text: string;
  /** Files, in the order of learning, and links to parts of pages. A file that is not there is left out. */
  readonly items: readonly (string | Item)[];
  /** Which files stand behind them, if no group names them. */
  readonly rest?: RegExp;
}

const guides = (...names: string[]): string[] => names.map((name) => `docs/guides/${name}.md`);
const algorithms = (...names: string[]): string[] => names.map((name) => `docs/algorithms/${name}.md`);
const inReadme = (text: string, anchor: string): Item => ({ text, link: `/start#${anchor}` });

const GROUPS: readonly Group[] = [
  {
    text: 'Start',
    items: [
      { text: 'Get started', link: '/start' },
      inReadme('Choose an algorithm', 'choose-an-algorithm'),
      inReadme('Where limits are declared', 'where-limits-are-declared'),
      inReadme('Whom limits count', 'keys'),
      inReadme('Limits in code', 'in-code'),
      inReadme('Before and after authentication', 'before-and-after-authentication'),
      inReadme('When Redis fails', 'without-redis-and-when-redis-fails'),
      inReadme('Several instances, proxies', 'several-instances-proxies'),
    ],
  },
  {
    text: 'Guides',
    items: guides(
      'responses',
      'testing',
      'protecting-a-login',
      'blocking',
      'counting-refused-tries',
      'waiting',
      'taking-what-is-there',
      'budgets',
      'language-models',
      'plans',
      'plans-by-tier',
      'concurrency',
      'transports',
      'graphql',
      'websockets',
      'mcp',
      'middleware',
    ),
    rest: /^docs\/guides\//,
  },
  {
    text: 'Algorithms',
    items: [
      { text: 'What holds for all', link: '/algorithms/' },
      ...algorithms(
        'gcra',
        'token-bucket',
        'sliding-window',
        'sliding-log',
        'fixed-window',
        'calendar-window',
        'budget',
        'leaky-bucket',
        'concurrency',
        'adaptive',
      ),
    ],
    rest: /^docs\/algorithms\//,
  },
  { text: 'Trying limits out', items: guides('simulate', 'shadow-mode', 'candidates') },
  {
    text: 'Operations',
    items: guides(
      'console',
      'observability',
      'explain',
      'lists',
      'changing-rates',
      'policy-files',
      'prefetching',
      'fair-shares',
      'usage',
      'hierarchies',
      'redis-users',
      'redis-clusters',
      'own-stores',
    ),
  },
  { text: 'Migrating', items: ['docs/migrating-from-throttler.md'], rest: /^docs\/migrating-from-/ },
  {
    text: 'Reference',
    items: [
      inReadme('Module options', 'module-options'),
      inReadme('Limit options', 'limit-options'),
      inReadme('Errors', 'errors'),
      { text: 'API', link: '/api/index.html', target: '_self' },
      'docs/compatibility.md',
      'docs/benchmarks.md',
    ],
  },
  {
    text: 'About',
    items: ['CHANGELOG.md', 'SECURITY.md', 'CONTRIBUTING.md', 'docs/architecture.md'],
    rest: /^(?!docs\/decisions\/)/,
  },
  {
    text: 'Decisions',
    items: [{ text: 'All of them', link: '/decisions/' }],
    rest: /^docs\/decisions\//,
  },
];

/** Where each page stands in the sidebar. No page is missing: a new one is in the group of its folder. */
export function sidebar(): Item[] {
  const files = filesOfPages().filter((file) => !/^docs\/index\.md$|(?:^|\/)README\.md$/.test(file));
  const named = new Set(GROUPS.flatMap(({ items }) => items));
  const left = new Set(files.filter((file) => !named.has(file)));
  return GROUPS.map(({ text, items, rest }) => {
    const there = items.filter((item) => typeof item !== 'string' || files.includes(item));
    const others = [...left].filter((file) => rest?.test(file) && left.delete(file));
    const shown = [...there, ...others].map((item) => (typeof item === 'string' ? itemOf(item) : item));
    return { text, items: shown };
  });
}

const readme = readFileSync(join(REPOSITORY, 'README.md'), 'utf8');

/** A page by the name that the README's table of guides gives it, or else by its heading. */
function itemOf(file: string): Item {
  const [, reference] = readme.match(new RegExp(`^\\[([^\\]]+)\\]: ${file}$`, 'm')) ?? [];
  const ways = [`](${file})`, ...(reference === undefined ? [] : [`][${reference}]`])];
  const row = readme.split('\n').find((line) => line.startsWith('| [') && ways.some((way) => line.includes(way)));
  const text = row === undefined ? headingOf(file) : /\[(.*?)\]/.exec(row)![1]!.replaceAll('`', '');
  return { text, link: `/${pageOf(file)!.replace(/(?:(^|\/)index)?\.md$/, '$1')}` };
}
