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

const INDEX = 'docs/index.md';
const index = readFileSync(join(REPOSITORY, INDEX), 'utf8');
const algorithms = (...names: string[]): string[] => names.map((name) => `docs/algorithms/${name}.md`);

/** The files in the table under a heading of `docs/index.md`. Whoever reads the repository finds the same order there. */
function tabled(heading: string): string[] {
  const section = index.split(/^#{2,3} /m).find((text) => text.startsWith(`${heading}\n`));
  if (section === undefined)
    throw new Error(`${INDEX} has no heading "${heading}", whose table the sidebar would show`);
  return [...section.matchAll(/^\| \[[^\]]+\]\(([\w./-]+)\)/gm)].map(([, path]) => `docs/${path}`);
}

const GROUPS: readonly Group[] = [
  {
    text: 'Start',
    items: [
      'docs/start.md',
      { text: 'Choose an algorithm', link: '/algorithms/#choose-one' },
      'docs/migrating-from-throttler.md',
    ],
    rest: /^docs\/migrating-from-/,
  },
  { text: 'Protect', items: tabled('Protect') },
  { text: 'Plans and money', items: tabled('Plans and money') },
  { text: 'Operate', items: tabled('Operate') },
  { text: 'Extend', items: tabled('Extend'), rest: /^docs\/guides\// },
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
  {
    text: 'Reference',
    items: [
      'docs/reference/module-options.md',
      'docs/reference/limit-options.md',
      'docs/reference/calls.md',
      'docs/reference/errors.md',
      { text: 'API', link: '/api/index.html', target: '_self' },
      'docs/compatibility.md',
      'docs/versioning.md',
      'docs/benchmarks.md',
    ],
    rest: /^docs\/reference\//,
  },
  {
    text: 'About',
    items: ['CHANGELOG.md', 'SECURITY.md', 'CONTRIBUTING.md', 'docs/architecture.md', 'docs/regions-protocol.md'],
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

/** A page by the name that a table of `docs/index.md` gives it, or else by its heading. */
function itemOf(file: string): Item {
  const row = index.split('\n').find((line) => line.startsWith('| [') && line.includes(`](${file.slice(5)}) `));
  const text = row === undefined ? headingOf(file) : /\[(.*?)\]/.exec(row)![1]!.replaceAll('`', '');
  return { text, link: `/${pageOf(file)!.replace(/(?:(^|\/)index)?\.md$/, '$1')}` };
}
