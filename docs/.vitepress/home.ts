import type { MarkdownRenderer, PageData } from 'vitepress';
import { fileOf, pageOf } from './pages.js';

const FILE = 'docs/index.md';

const HERO = {
  name: 'nestjs-sluice',
  text: 'Rate limits that hold',
  tagline:
    'For NestJS. Declare limits on routes; one atomic call decides all limits of a request, on Redis or in process.',
  actions: [
    { theme: 'brand', text: 'Get started', link: '/start' },
    { theme: 'alt', text: 'Choose an algorithm', link: '/algorithms/#choose-one' },
    { theme: 'alt', text: 'From throttler', link: '/migrating-from-throttler' },
  ],
};

const FEATURES = [
  {
    title: 'All limits, or none',
    details: 'One script call decides all limits of a request. All of them allow it, or none of them is charged.',
    link: '/guides/declaring-limits#which-limits-are-checked-together',
  },
  {
    title: 'Never more than a limit allows',
    details: 'However many processes share one Redis. A refused request costs nothing.',
    link: '/algorithms/',
  },
  {
    title: 'Exact waits',
    details: 'Retry-After is the shortest wait after which the same request fits, rounded up to whole seconds.',
    link: '/guides/responses',
  },
  {
    title: 'Trouble never hangs a request',
    details: 'Each check has a deadline of 250 ms. While Redis fails, each limit says what happens.',
    link: '/guides/when-redis-fails',
  },
  {
    title: 'The same algorithms, twice',
    details: 'In Lua on Redis and in TypeScript in the process. Without Redis an app needs nothing else.',
    link: '/algorithms/#choose-one',
  },
  {
    title: 'Seen and changed while it runs',
    details: 'See why a customer is refused. Change their rate on all instances within 100 ms, without a deploy.',
    link: '/reference/calls#while-the-app-runs',
  },
];

/** Makes the first page of `docs/index.md`, which is a plain list of links in the repository. */
export function withTitles(page: PageData): Partial<PageData> | undefined {
  if (page.relativePath !== pageOf(FILE)) return undefined;
  return { title: 'Rate limiting for NestJS', frontmatter: { layout: 'home', hero: HERO, features: FEATURES } };
}

/** Leaves out the heading of the first page's file: the hero has one. */
export function headingOfHome(md: MarkdownRenderer): void {
  md.core.ruler.push('heading-of-home', ({ tokens, env }) => {
    // A heading is three tokens: its begin, its text, its end.
    if (fileOf(env) === FILE) tokens.splice(0, 3);
  });
}
