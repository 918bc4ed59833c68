import type { AlgorithmName } from 'nestjs-sluice';

/** A route to try, with as many requests as bring it to its limit. */
export interface Stop {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly limit: string;
  /** How its limits give units back. */
  readonly algo: AlgorithmName;
  /** What limits it: a file of `src/`, and how each piece of it begins, which goes on until its brackets are closed. */
  readonly code: readonly (readonly [file: string, ...beginnings: string[]])[];
  /** The page about it, a file of `docs/`. */
  readonly docs: string;
  /** Among the first that a visitor should see. */
  readonly isTelling?: boolean;
  readonly requests: number;
  readonly headers?: readonly string[];
  readonly body?: string;
  /** All requests at once, for a limit that holds them. */
  readonly parallel?: boolean;
}

export const STOPS: readonly Stop[] = [
  {
    method: 'POST',
    path: '/login',
    algo: 'sliding-log',
    code: [
      ['auth/login.controller.ts', "@RateLimit('login')"],
      ['app.module.ts', 'login: {'],
    ],
    docs: 'guides/protecting-a-login.md',
    isTelling: true,
    limit: 'sliding-log, 5 failed attempts in 15 minutes, then blocked for 15',
    requests: 6,
    body: 'user=ada&password=guess',
  },
  {
    method: 'GET',
    path: '/search?q=nest',
    algo: 'gcra',
    code: [
      ['search/search.controller.ts', "@RateLimit('search')"],
      ['app.module.ts', 'search: {'],
    ],
    docs: 'algorithms/gcra.md',
    isTelling: true,
    limit: 'gcra, 10 a minute, 5 at once',
    requests: 6,
  },
  {
    method: 'GET',
    path: '/exports?rows=4000',
    algo: 'token-bucket',
    code: [['exports/exports.controller.ts', "@RateLimit({ name: 'export-rows'", 'function rowsCost']],
    docs: 'algorithms/token-bucket.md',
    isTelling: true,
    limit: 'token-bucket, 10,000 rows a minute, 100 rows a unit',
    requests: 3,
  },
  {
    method: 'GET',
    path: '/reports',
    algo: 'sliding-window',
    code: [['reports/reports.controller.ts', '@RateLimit(']],
    docs: 'guides/declaring-limits.md',
    isTelling: true,
    limit: 'sliding-window, 10 a minute and 100 an hour',
    requests: 11,
  },
  {
    method: 'GET',
    path: '/reports/1',
    algo: 'sliding-window',
    code: [['reports/reports.controller.ts', '@RateLimit(']],
    docs: 'algorithms/sliding-window.md',
    limit: 'the same counters as /reports',
    requests: 11,
  },
  {
    method: 'POST',
    path: '/translations',
    algo: 'calendar-window',
    code: [
      ['translations/translations.controller.ts', "@RateLimit('daily-translations')"],
      ['app.module.ts', "'daily-translations': {"],
    ],
    docs: 'algorithms/calendar-window.md',
    limit: 'calendar-window, 5 a day for each user',
    requests: 6,
    headers: ['x-user: ada'],
    body: 'text=sluice',
  },
  {
    method: 'GET',
    path: '/translations/usage',
    algo: 'fixed-window',
    code: [['translations/translations.controller.ts', "@RateLimit({ algo: 'fixed-window'", 'const days =']],
    docs: 'algorithms/fixed-window.md',
    limit: 'fixed-window, 5 in 10 seconds for each user',
    requests: 6,
    headers: ['x-user: ada'],
  },
  {
    method: 'GET',
    path: '/forecast',
    algo: 'token-bucket',
    code: [['forecast/forecast.controller.ts', '@RateLimit(byPlan)', 'const FREE', 'const PLANS', 'function byPlan']],
    docs: 'guides/plans-by-tier.md',
    isTelling: true,
    limit: 'by plan (free, pro, partner): token-bucket, 3 a minute for free',
    requests: 4,
    headers: ['x-user: ada', 'x-plan: free'],
  },
  {
    method: 'POST',
    path: '/mails',
    algo: 'leaky-bucket',
    code: [['mail/mail-queue.ts', 'this.outgoing =', 'const decision =']],
    docs: 'guides/in-code.md',
    limit: 'leaky-bucket in code, one mail every 2 seconds, 4 wait',
    requests: 6,
    body: 'to=ada@example.org',
  },
  {
    method: 'GET',
    path: '/thumbnails/1',
    algo: 'leaky-bucket',
    code: [['thumbnails/thumbnails.controller.ts', "@RateLimit({ name: 'renderer'"]],
    docs: 'algorithms/leaky-bucket.md',
    isTelling: true,
    limit: 'leaky-bucket, 2 a second, 3 are held, the others refused',
    requests: 8,
    parallel: true,
  },
  {
    method: 'GET',
    path: '/exports/archive',
    algo: 'concurrency',
    code: [['exports/exports.controller.ts', "@RateLimit({ name: 'archives'"]],
    docs: 'guides/concurrency.md',
    isTelling: true,
    limit: 'concurrency, 2 at once',
    requests: 5,
    parallel: true,
  },
  {
    method: 'POST',
    path: '/digests',
    algo: 'gcra',
    code: [['digests/digests.controller.ts', 'this.partner =', 'await this.partner.acquire']],
    docs: 'guides/waiting.md',
    limit: 'gcra in code, waits up to 1.5 seconds',
    requests: 6,
    body: 'a=b',
    parallel: true,
  },
  {
    method: 'POST',
    path: '/summaries',
    algo: 'token-bucket',
    code: [
      [
        'summaries/summaries.controller.ts',
        'const ESTIMATE',
        "@RateLimit({ name: 'model-tokens'",
        'await decision.settle',
      ],
    ],
    docs: 'guides/waiting.md',
    limit: 'token-bucket, 1,000 tokens an hour, 400 charged and settled afterwards',
    requests: 8,
    body: 'text=all about sluices and gates',
  },
  {
    method: 'POST',
    path: '/completions',
    algo: 'budget',
    code: [
      ['app.module.ts', "'model-money': {"],
      ['completions/completions.controller.ts', 'const call = await', 'await call.settle'],
    ],
    docs: 'guides/budgets.md',
    isTelling: true,
    limit: 'budget, a cent a day, 0.6 cents held for each call and settled at what it took',
    requests: 8,
    body: 'text=all about sluices and gates',
  },
  {
    method: 'GET',
    path: '/completions/usage.csv',
    algo: 'fixed-window',
    code: [['completions/completions.controller.ts', "@RateLimit({ algo: 'fixed-window'", 'for await (const { key']],
    docs: 'guides/usage.md',
    limit: 'fixed-window, 5 a minute; what /completions charged each day, for invoices (usage)',
    requests: 6,
  },
  {
    method: 'GET',
    path: '/quotes',
    algo: 'fixed-window',
    code: [['quotes/quotes.controller.ts', 'const limit =', 'this.fetch =', 'const answer =']],
    docs: 'guides/outbound.md',
    limit: 'fixed-window, 5 calls to an API of others in 10 seconds, as that one says',
    requests: 6,
  },
  {
    method: 'POST',
    path: '/rates/search',
    algo: 'fixed-window',
    code: [['rates/rates.controller.ts', "@RateLimit({ name: 'change-rates'", 'await this.limits.setRate']],
    docs: 'guides/changing-rates.md',
    limit: 'changes the rate of /search from 10 to 30 a minute, for a minute',
    requests: 6,
    body: 'rate=30',
  },
  {
    method: 'GET',
    path: '/orders',
    algo: 'sliding-window',
    code: [['orders/orders.controller.ts', '@RateLimit({']],
    docs: 'guides/priorities.md',
    isTelling: true,
    limit: 'sliding-window, 8 a minute, 2 of them only for ?paying=1 (priorities)',
    requests: 7,
  },
  {
    method: 'GET',
    path: '/recommendations',
    algo: 'token-bucket',
    code: [['recommendations/recommendations.controller.ts', '@RateLimit({']],
    docs: 'guides/warm-up.md',
    limit: 'token-bucket, 6 a minute that warms up: a cold request takes 4 tokens',
    requests: 4,
  },
  {
    method: 'GET',
    path: '/boards',
    algo: 'sliding-window',
    code: [
      ['boards/boards.controller.ts', "@RateLimit('board-user')"],
      ['app.module.ts', "'board-user': {", "'board-team': {"],
    ],
    docs: 'guides/hierarchies.md',
    isTelling: true,
    limit: 'users within teams: 4 a minute for a user and 2 more that are borrowed of the 20 of the team',
    requests: 7,
    headers: ['x-user: ada', 'x-team: red'],
  },
  {
    method: 'GET',
    path: '/invoices',
    algo: 'calendar-window',
    code: [
      ['invoices/invoices.controller.ts', "@RateLimit('invoices')"],
      ['app.module.ts', 'invoices: {'],
    ],
    docs: 'guides/plans.md',
    limit:
      'calendar-window, 3 a month from the 31st, half of the rest moves on; more: -d "id=pay-1&units=2" to /invoices/credits',
    requests: 4,
    headers: ['x-user: ada'],
  },
  {
    method: 'GET',
    path: '/previews',
    algo: 'adaptive',
    code: [['previews/previews.controller.ts', '@RateLimit({']],
    docs: 'algorithms/adaptive.md',
    limit: 'adaptive, as many at once as this instance can take, from 4 on; the others get 503',
    requests: 8,
    parallel: true,
  },
  {
    method: 'GET',
    path: '/renders',
    algo: 'token-bucket',
    code: [['renders/renders.controller.ts', '@RateLimit({']],
    docs: 'guides/fair-shares.md',
    limit: 'token-bucket, 12 an hour for all tenants together, shared by weight (try x-tenant: globex, too)',
    requests: 13,
    headers: ['x-tenant: acme'],
  },
];

/** The routes, and a line to try for each. */
export function tour(origin: string): string {
  const stops = STOPS.map((stop) => `${stop.method} ${stop.path}   ${stop.limit}\n  ${curl(origin, stop)}\n`);
  return `Each line asks until the limit refuses: look for RateLimit, 429 or 503, and Retry-After.\n\n${stops.join('\n')}`;
}

/** Answers whole, with a line end after each body, which has none. */
const ONE_BY_ONE = '-i -w "\\n"';
/** All at once, without waiting for the first to connect; a line each, since whole answers would mingle. */
const PARALLEL =
  '-Z --parallel-immediate -s -o /dev/null ' +
  '-w "%{http_code}  RateLimit: %header{ratelimit}  Retry-After: %header{retry-after}\\n"';

/** curl repeats a request for every number of `#[1-6]`, which is not sent. */
function curl(origin: string, { path, requests, headers = [], body, parallel = false }: Stop): string {
  const options = [
    parallel ? PARALLEL : ONE_BY_ONE,
    ...headers.map((header) => `-H "${header}"`),
    ...(body === undefined ? [] : [`-d "${body}"`]),
  ];
  return `curl ${options.join(' ')} "${origin}${path}#[1-${requests}]"`;
}
