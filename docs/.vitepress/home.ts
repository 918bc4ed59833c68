import type { MarkdownRenderer, PageData } from 'vitepress';
import { fileOf, pageOf } from './pages.js';

const FILE = 'docs/index.md';

const HERO = {
  name: 'nestjs-sluice',
  text: 'Rate limits that hold',
  tagline:
    'Rate limiting for NestJS. Declare limits with a decorator. One atomic call decides all limits of a request, in memory or on Redis.',
  actions: [
    { theme: 'brand', text: 'Get started', link: '/start' },
    { theme: 'alt', text: 'Choose an algorithm', link: '/algorithms/#choose-one' },
    { theme: 'alt', text: 'From throttler', link: '/coming-from-throttler' },
  ],
};

const FEATURES = [
  {
    title: 'All limits, or none',
    details: 'One script call decides all limits of a request. If one rejects it, none is charged.',
    link: '/guides/declaring-limits#which-limits-are-checked-together',
  },
  {
    title: 'Never more than a limit allows',
    details: 'No matter how many instances share a Redis. Rejected requests cost nothing.',
    link: '/algorithms/',
  },
  {
    title: 'Exact waits',
    details: 'Retry-After is when the same request can succeed, rounded up to whole seconds.',
    link: '/guides/responses',
  },
  {
    title: 'Redis can fail',
    details: 'Each check waits 250 ms at most. Then the failure policy of each limit decides.',
    link: '/guides/when-redis-fails',
  },
  {
    title: 'The same algorithms, twice',
    details: 'In Lua on Redis, and in TypeScript in memory. Without Redis, your app needs nothing else.',
    link: '/algorithms/#choose-one',
  },
  {
    title: 'Live control',
    details: 'See why a customer is limited, and change their rate on all instances within 100 ms, without a deploy.',
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
