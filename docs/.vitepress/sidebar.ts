import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DefaultTheme } from 'vitepress';
import { filesOfPages, headingOf, pageOf, REPOSITORY } from './pages.js';

type Item = DefaultTheme.SidebarItem;

/** Which sidebar shows a group: that of most pages, that of what few need, or that of the library's own workings. */
type Part = 'main' | 'more' | 'internals';

interface Group {
  readonly text: string;
  readonly part: Part;
  /** Files in reading order, and links to other pages. A file that doesn't exist is left out. */
  readonly items: readonly (string | Item)[];
  /** Files that come after these if no group names them. */
  readonly rest?: RegExp;
}

const INDEX = 'docs/index.md';
const index = readFileSync(join(REPOSITORY, INDEX), 'utf8');
const guides = (...names: string[]): string[] => names.map((name) => `docs/guides/${name}.md`);
const algorithms = (...names: string[]): string[] => names.map((name) => `docs/algorithms/${name}.md`);
const reference = (...names: string[]): string[] => names.map((name) => `docs/reference/${name}.md`);

const GROUPS: readonly Group[] = [
  {
    text: 'Learn',
    part: 'main',
    items: [
      'docs/start.md',
      ...['per-user', 'redis', 'proxy', 'testing', 'going-live'].map((name) => `docs/start/${name}.md`),
    ],
    rest: /^docs\/start\//,
  },
  {
    text: 'A SaaS API',
    part: 'main',
    items: guides('declaring-limits', 'keys', 'jwt-and-passport', 'plans-by-tier', 'responses'),
  },
  {
    text: 'Protect a login',
    part: 'main',
    items: guides('protecting-a-login', 'login-by-email-and-address', 'blocking', 'lists'),
  },
  {
    text: 'LLM tokens and money',
    part: 'main',
    items: guides('language-models', 'budgets', 'plans', 'usage'),
  },
  { text: 'Calls to other APIs', part: 'main', items: guides('outbound', 'waiting') },
  { text: 'Transports', part: 'main', items: guides('graphql', 'websockets', 'mcp') },
  {
    text: 'Operate',
    part: 'main',
    items: guides(
      'behind-a-proxy',
      'when-redis-fails',
      'redis-clients',
      'observability',
      'console',
      'explain',
      'changing-rates',
      'shadow-mode',
    ),
  },
  {
    text: 'Reference',
    part: 'main',
    items: [
      { text: 'Algorithms', link: '/algorithms/' },
      ...reference('limit-options', 'module-options', 'calls', 'errors'),
      { text: 'API', link: '/api/index.html', target: '_self' },
    ],
  },
  {
    text: 'Help',
    part: 'main',
    items: [
      ...['troubleshooting', 'faq', 'comparison'].map((name) => `docs/help/${name}.md`),
      'docs/benchmarks.md',
      'docs/migrating-from-throttler.md',
    ],
  },
  {
    text: 'Algorithms',
    part: 'more',
    items: [
      { text: 'Choose an algorithm', link: '/algorithms/' },
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
  { text: 'More guides', part: 'more', items: tabled('Limit requests', 'Operate') },
  { text: 'Advanced', part: 'more', items: tabled('Advanced', 'Transports'), rest: /^docs\/guides\// },
  { text: 'More reference', part: 'more', items: tabled('Reference', 'Details'), rest: /^docs\/reference\// },
  {
    text: 'Moving over, and help',
    part: 'more',
    items: tabled('Moving over', 'Help'),
    rest: /^docs\/(?:migrating-|help\/)/,
  },
  {
    text: 'Internals',
    part: 'internals',
    items: [
      'docs/architecture.md',
      'docs/internals/regions-protocol.md',
      'CONTRIBUTING.md',
      'SECURITY.md',
      'CHANGELOG.md',
    ],
    rest: /^(?!docs\/decisions\/)/,
  },
  {
    text: 'Decisions',
    part: 'internals',
    items: [{ text: 'All of them', link: '/decisions/' }],
    rest: /^docs\/decisions\//,
  },
];

/** The files in the tables under headings of `docs/index.md`, which people who read the repository find in the same order. */
function tabled(...headings: string[]): string[] {
  return headings.flatMap((heading) => {
    const section = index.split(/^#{2,3} /m).find((text) => text.startsWith(`${heading}\n`));
    if (section === undefined)
      throw new Error(`${INDEX} has no heading "${heading}", whose table the sidebar would show`);
    return [...section.matchAll(/^\| \[[^\]]+\]\(([\w./-]+)\)/gm)].map(([, path]) => `docs/${path}`);
  });
}

/** A group with the files of its pages. */
export interface Listed {
  readonly text: string;
  readonly part: Part;
  readonly entries: readonly (string | Item)[];
}

/** The groups of all sidebars. Each page is in exactly one of them: a new one is in the group of its folder. */
export function groups(): Listed[] {
  const files = filesOfPages().filter((file) => !/^docs\/index\.md$|(?:^|\/)README\.md$/.test(file));
  const left = new Set(files);
  const named = GROUPS.map(({ items }) => items.filter((item) => typeof item !== 'string' || left.delete(item)));
  return GROUPS.map(({ text, part, rest }, at) => {
    const others = [...left].filter((file) => rest?.test(file) && left.delete(file));
    return { text, part, entries: [...named[at]!, ...others] };
  });
}

/** The sidebar of each page: few entries on most pages, and all others on the pages that few need. */
export function sidebar(): DefaultTheme.SidebarMulti {
  const all = groups();
  const shown = (part: Part, fold?: (text: string) => boolean): Item[] =>
    all
      .filter((group) => group.part === part)
      .map(({ text, entries }) => ({
        text,
        ...(fold === undefined ? {} : { collapsed: fold(text) }),
        items: entries.map((entry) => (typeof entry === 'string' ? itemOf(entry) : entry)),
      }));
  const back: Item = { text: 'Back to the first pages', link: '/start' };
  const more: Item[] = [back, ...shown('more')];
  const internals: Item[] = [back, ...shown('internals')];
  const main: Item[] = [
    ...shown('main', (text) => text !== 'Learn'),
    { text: 'Advanced, and all other guides', link: linkOf('docs/guides/hierarchies.md') },
    { text: 'Internals', link: '/architecture' },
  ];
  const ofPart = (part: Part, items: Item[]): [string, Item[]][] =>
    all
      .filter((group) => group.part === part)
      .flatMap(({ entries }) => entries.filter((entry) => typeof entry === 'string'))
      .map((file) => [`/${pageOf(file)!}`, items]);
  return Object.fromEntries([
    ['/decisions/', internals],
    ...ofPart('internals', internals),
    ['/algorithms/index.md', main],
    ...ofPart('more', more),
    ['/', main],
  ]);
}

/** A page by the name that a table of `docs/index.md` gives it, or else by its heading. */
function itemOf(file: string): Item {
  const row = index.split('\n').find((line) => line.startsWith('| [') && line.includes(`](${file.slice(5)}) `));
  const text = row === undefined ? headingOf(file) : /\[(.*?)\]/.exec(row)![1]!.replaceAll('`', '');
  return { text, link: linkOf(file) };
}

function linkOf(file: string): string {
  return `/${pageOf(file)!.replace(/(?:(^|\/)index)?\.md$/, '$1')}`;
}
