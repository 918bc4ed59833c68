import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ownEnvironment, PACKAGE_FOLDER } from '../support/processes/npm.js';
import { startRedis } from '../support/redis/redis-servers.js';
import { until } from '../support/time/until.js';

/**
 * Guides that begin with commands of the program, which its own specs run, with code without an app, or with the continuation of another
 * guide's example.
 */
const WITHOUT_APP: readonly string[] = [
  'simulate',
  'terminal',
  'routes-without-a-limit',
  'client',
  'console-views',
  'console-operation',
];

const pages = [
  'docs/start.md',
  ...readdirSync(join(PACKAGE_FOLDER, 'docs/start')).map((name) => `docs/start/${name}`),
  ...readdirSync(join(PACKAGE_FOLDER, 'docs/guides')).map((name) => `docs/guides/${name}`),
].map((file) => ({ name: nameOf(file), text: readFileSync(join(PACKAGE_FOLDER, file), 'utf8') }));

/** A name for a page's file: `start-redis` for `docs/start/redis.md`, `keys` for `docs/guides/keys.md`. */
function nameOf(file: string): string {
  return file.slice('docs/'.length, -'.md'.length).replace('guides/', '').replace('/', '-');
}

const textOf = (page: string): string => pages.find(({ name }) => name === page)!.text;
const firstOf = (text: string): string => /^```ts\n([^]*?)^```/m.exec(text)?.[1] ?? '';
const isWhole = (code: string): boolean => /^import /m.test(code) && code.includes('@Module(');

const examples = new Map(
  pages.map(({ name, text }) => [name, firstOf(text)] as const).filter(([, code]) => isWhole(code)),
);
examples.set('skill', firstOf(readFileSync(join(PACKAGE_FOLDER, 'SKILL.md'), 'utf8')));
/** The first block of a page's part that begins with some heading. */
function exampleBelow(file: string, heading: string): string {
  const [, below] = readFileSync(join(PACKAGE_FOLDER, file), 'utf8').split(`${heading}\n`);
  return firstOf(below!);
}
examples.set('prometheus', exampleBelow('docs/guides/observability.md', '### Prometheus'));
examples.set('prom-client', exampleBelow('docs/reference/events.md', '## With prom-client'));
examples.set('rates-from-a-database', exampleBelow('docs/reference/limit-functions.md', '# Limits from functions'));

/** Only compiled: it needs a server of PostgreSQL. */
const POSTGRES = exampleBelow('docs/reference/own-stores.md', '## PostgreSQL');
/** What it uses of `pg`. */
const PG = `declare module 'pg' {
  type Query = <R>(text: string, values?: readonly unknown[]) => Promise<{ rows: R[] }>;
  export class Pool {
    query: Query;
    connect(): Promise<{ query: Query; release(): void }>;
  }
}
`;

/** What an example uses of `@nestjs/jwt`, which is not installed here. Tokens are their payloads. */
const JWT_TYPES = `declare module '@nestjs/jwt' {
  export class JwtService { verifyAsync<T>(token: string): Promise<T>; }
  export class JwtModule { static register(options: { secret: string }): import('@nestjs/common').DynamicModule; }
}
`;
const JWT = `
export class JwtService { async verifyAsync(token) { return JSON.parse(token); } }
export class JwtModule {
  static register() { return { module: JwtModule, providers: [JwtService], exports: [JwtService] }; }
}
`;

// The same app, before and after it moved.
const [, move] = /^```diff\n([^]*?)^```/m.exec(
  readFileSync(join(PACKAGE_FOLDER, 'docs/migrating-from-throttler.md'), 'utf8'),
)!;
const side = (left: '-' | '+'): string =>
  move!.replaceAll(/^(.).*\n/gm, (line, mark: string) => (mark === left || mark === ' ' ? line.slice(1) : ''));
examples.set('throttler-before', side('-'));
examples.set('throttler-after', side('+'));

/** Imports all examples, and starts the modules of those that do not start an app themselves. Reports their addresses. */
const RUNNER = `
import { readdirSync } from 'node:fs';
import { NestFactory } from '@nestjs/core';
globalThis.urls = {};
const settings = { logger: false, abortOnError: false };
const create = NestFactory.create.bind(NestFactory);
NestFactory.create = (module, ...rest) => create(module, ...rest.map((one) => ({ ...one, ...settings })), ...(rest.length === 0 ? [settings] : []));
for (const file of readdirSync(import.meta.dirname).filter((name) => name.endsWith('.js') && name !== 'runner.js' && name !== 'postgres.js')) {
  const name = file.slice(0, -3);
  try {
    globalThis.running = name;
    const exported = await import('./' + file);
    const module = exported.AppModule ?? Object.values(exported).find((one) => one?.name?.endsWith('Module'));
    for (let turn = 0; turn < 100 && module === undefined && urls[name] === undefined; turn++) await new Promise((resolve) => setTimeout(resolve, 50));
    if (urls[name] === undefined && module !== undefined) {
      const app = await create(module, settings);
      await app.listen(0, '127.0.0.1');
      urls[name] = await app.getUrl();
    }
    console.log(JSON.stringify({ name, url: urls[name] }));
  } catch (error) {
    console.log(JSON.stringify({ name, error: String(error?.stack ?? error) }));
  }
}
console.log(JSON.stringify({ isOver: true }));
`;

interface Started {
  readonly name: string;
  readonly url?: string;
  readonly error?: string;
  readonly isOver?: boolean;
}

let folder: string;
let complaints: string[];
let runner: ChildProcess | undefined;
let redis: Awaited<ReturnType<typeof startRedis>> | undefined;
const started = new Map<string, Started>();

beforeAll(async () => {
  mkdirSync(join(PACKAGE_FOLDER, 'build'), { recursive: true });
  // Beside the package's own build: its name leads to it from there.
  folder = mkdtempSync(join(PACKAGE_FOLDER, 'build/whole-examples-'));
  redis = await startRedis();
  for (const [name, code] of examples) {
    const runnable = code
      .replaceAll('redis://localhost:6379', redis.url)
      .replaceAll(
        'await app.listen(3000);',
        `await app.listen(0, '127.0.0.1'); (globalThis as any).urls['${name}'] = await app.getUrl();`,
      );
    writeFileSync(join(folder, `${name}.ts`), `${runnable}\nexport {};\n`);
  }
  const compilerOptions = {
    noEmit: false,
    outDir: 'out',
    rootDir: '.',
    declaration: false,
    declarationMap: false,
    sourceMap: false,
  };
  writeFileSync(join(folder, 'pg.d.ts'), PG);
  writeFileSync(join(folder, 'postgres.ts'), POSTGRES);
  writeFileSync(join(folder, 'jwt.d.ts'), JWT_TYPES);
  mkdirSync(join(folder, 'node_modules/@nestjs/jwt'), { recursive: true });
  writeFileSync(join(folder, 'node_modules/@nestjs/jwt/package.json'), '{ "type": "module", "exports": "./index.js" }');
  writeFileSync(join(folder, 'node_modules/@nestjs/jwt/index.js'), JWT);
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../tsconfig.base.json',
      compilerOptions: { ...compilerOptions, verbatimModuleSyntax: false, types: ['node'] },
      include: ['*.ts'],
    }),
  );
  complaints = await compile();
  writeFileSync(join(folder, 'out/runner.js'), RUNNER);
  // What stands beside the example of policies.
  writeFileSync(join(folder, 'limits.yaml'), /^```yaml\n([^]*?)^```/m.exec(textOf('policy-files'))![1]!);
  await start();
}, 300_000);

afterAll(async () => {
  runner?.kill();
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function compile(): Promise<string[]> {
  const tsc = join(PACKAGE_FOLDER, 'node_modules/.bin/tsc');
  const output = await promisify(execFile)(tsc, ['-p', join(folder, 'tsconfig.json'), '--checkers', '1'], {
    cwd: folder,
  }).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
  return output.split('\n').filter((line) => line.includes('error TS'));
}

async function start(): Promise<void> {
  runner = spawn(process.execPath, [join(folder, 'out/runner.js')], {
    cwd: folder,
    env: { ...ownEnvironment(), REDIS_URL: redis!.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: runner.stdout! })) {
    if (!line.startsWith('{')) continue;
    const one = JSON.parse(line) as Started;
    if (one.isOver) return;
    started.set(one.name, one);
  }
}

const statuses = async (name: string, path: string, count: number, headers: Record<string, string> = {}) => {
  const all: number[] = [];
  for (let call = 0; call < count; call++) all.push((await fetch(started.get(name)!.url! + path, { headers })).status);
  return all;
};

const post = async (name: string, path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(urlOf(name) + path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { ...headers, 'content-type': 'application/json' },
  });

const from = (address: string) => ({ 'x-forwarded-for': address });

const urlOf = (name: string) => started.get(name)!.url!;
const text = async (url: string, method = 'GET') => (await fetch(url, { method })).text();

const quotaOf = async (organization: string) => {
  const headers = { 'x-organization': organization };
  const answer = await fetch(`${urlOf('rates-from-a-database')}/reports`, { headers });
  return /"plan";q=(\d+)/.exec(answer.headers.get('ratelimit-policy')!)![1];
};

const quotaOfPolicy = async (tenant: string) => {
  const { headers } = await fetch(`${urlOf('policy-files')}/reports`, { headers: { 'x-tenant': tenant } });
  return /"api";q=(\d+)/.exec(headers.get('ratelimit-policy')!)![1];
};

const changeRate = async (headers: Record<string, string>) => {
  const body = JSON.stringify({ rate: 1 });
  const type = { 'content-type': 'application/json' };
  const url = `${urlOf('changing-rates')}/admin/rates/api`;
  return (await fetch(url, { method: 'PUT', body, headers: { ...type, ...headers } })).status;
};

describe('a guide begins with an example', () => {
  it.each(pages.filter(({ name }) => !WITHOUT_APP.includes(name)))('that is whole: $name', ({ name, text }) => {
    expect([name, isWhole(firstOf(text))]).toEqual([name, true]);
  });

  it.each([...examples.keys()])('that compiles as it stands, and starts: %s', (name) => {
    expect(complaints.filter((line) => line.startsWith(`${name}.ts(`))).toEqual([]);
    expect(started.get(name)).toMatchObject({ name, url: expect.stringContaining('http') });
  });

  it('and is all that is compiled', () => {
    const files = [...examples.keys()].map((name) => `${name}.ts(`);
    expect(complaints.filter((line) => !files.some((file) => line.startsWith(file)))).toEqual([]);
  });

  // Without the guard an app of Nest 11 does not start. Here runs Nest 12, which does without.
  it('and binds the guard to each gateway with a limit', () => {
    const gateways = [...examples].flatMap(([name, code]) =>
      [...code.matchAll(/^@WebSocketGateway[^]*?^\}/gm)].map(([gateway]) => ({ name, gateway })),
    );
    const limited = gateways.filter(({ gateway }) => gateway.includes('@RateLimit('));
    expect(limited.map(({ name }) => name)).toContain('transports');
    for (const { gateway } of limited) expect(gateway).toContain('@UseGuards(RateLimitGuard)');
  });

  it('refuses as the page to start with says', async () => {
    expect(await statuses('start', '/reports', 3)).toEqual([200, 200, 429]);
  });

  it('refuses users, and shows addresses, as the first pages say', async () => {
    expect(await statuses('start-per-user', '/reports', 4, { authorization: 'Bearer ada' })).toEqual([
      200, 200, 200, 429,
    ]);
    expect(await statuses('start-redis', '/reports', 3)).toEqual([200, 200, 429]);
    expect(await text(`${urlOf('start-proxy')}/ip`)).toBe('ip:127.0.0.1');
    expect(await statuses('start-going-live', '/ops/limits', 1)).toEqual([403]);
  });

  it('counts a tenant, and refuses who names none', async () => {
    expect(await statuses('keys', '/reports', 4, { 'x-tenant': 'acme' })).toEqual([200, 200, 200, 429]);
    expect(await statuses('keys', '/reports', 1)).toEqual([400]);
  });

  it('counts wrong tokens by address before the guard, and users after it', async () => {
    const page = 'before-and-after-authentication';
    expect(await statuses(page, '/reports', 4, { authorization: 'Bearer ada' })).toEqual([200, 200, 200, 429]);
    expect(await statuses(page, '/reports', 3)).toEqual([403, 403, 429]);
  });

  it('counts the users of tokens, and wrong tokens by address', async () => {
    const ada = { authorization: 'Bearer {"sub":"ada"}' };
    expect(await statuses('jwt-and-passport', '/reports', 4, ada)).toEqual([200, 200, 200, 429]);
    const response = await fetch(`${urlOf('jwt-and-passport')}/reports`, { headers: { authorization: 'Bearer x' } });
    expect([response.status, response.headers.get('ratelimit-policy')]).toEqual([401, '"address";q=8;w=60']);
    expect(await statuses('jwt-and-passport', '/reports', 4)).toEqual([401, 401, 401, 429]);
  });

  it('shows the address that a proxy reports, and counts by it', async () => {
    const shown = await fetch(`${urlOf('behind-a-proxy')}/ip`, { headers: from('6.6.6.6, 203.0.113.7, 10.0.0.2') });
    expect(await shown.json()).toMatchObject({ counted: 'ip:203.0.113.7' });
    expect(await statuses('behind-a-proxy', '/reports', 4, from('203.0.113.7'))).toEqual([200, 200, 200, 429]);
    expect(await statuses('behind-a-proxy', '/reports', 1, from('203.0.113.8'))).toEqual([200]);
  });

  it('gives each plan its own rate', async () => {
    const ask = (key: string, count: number) => statuses('plans-by-tier', '/workflows', count, { 'x-api-key': key });
    expect(await ask('', 1)).toEqual([403]);
    const policyOf = async (key: string) =>
      (await fetch(`${urlOf('plans-by-tier')}/workflows`, { headers: { 'x-api-key': key } })).headers.get(
        'ratelimit-policy',
      );
    expect([await policyOf('key-of-bob'), await policyOf('key-of-acme')]).toEqual(['"api";q=5;w=1', '"api";q=50;w=1']);
  });

  it('locks an address out of one account, and unlocks the account', async () => {
    const page = 'login-by-email-and-address';
    const log = async (email: string, password = 'wrong') => (await post(page, '/login', { email, password })).status;
    const all: number[] = [];
    for (let attempt = 0; attempt < 6; attempt++) all.push(await log('ann@example.com'));
    expect(all).toEqual([401, 401, 401, 401, 401, 429]);
    expect(await log('bob@example.com')).toBe(401);
    const right = 'correct horse battery staple';
    expect(await log(' Ann@Example.com', right)).toBe(429);
    expect((await post(page, '/accounts/ann@example.com/unlock', {})).status).toBe(201);
    expect(await log('ann@example.com', right)).toBe(200);
  });

  it('holds two places of every export, and releases both', async () => {
    const ask = async (user: string) =>
      (await fetch(`${urlOf('two-concurrency-limits')}/exports`, { headers: { 'x-user': user } })).headers.get(
        'ratelimit',
      );
    const first = /^"exports-of-user";r=1;t=\d+, "exports-of-all";r=2;t=\d+$/;
    expect(await ask('ada')).toMatch(first);
    // Its places come back a moment after its response.
    await until(async () => first.test((await ask('ada'))!));
  });

  it('shows the console to nobody without a role', async () => {
    expect(await statuses('console', '/ops/limits', 1)).toEqual([403]);
  });

  it.each(['throttler-before', 'throttler-after'])(
    'moves from the throttler, with the same answers: %s',
    async (name) => {
      expect(await statuses(name, '/reports', 4)).toEqual([200, 200, 200, 429]);
      expect(await statuses(name, '/reports/health', 5)).toEqual([200, 200, 200, 200, 200]);
    },
  );

  it.each([
    ['warm-up', '/search', 3, [200, 200, 200]],
    ['shadow-mode', '/exports', 4, [200, 200, 200, 200]],
    ['observability', '/reports', 3, [200, 200, 429]],
    ['transports', '/rooms', 3, [200, 200, 429]],
    ['blocking', '/codes', 6, [200, 200, 200, 200, 200, 429]],
    ['priorities', '/prices', 1, [200]],
    ['prefetching', '/prices', 2, [200, 200]],
    ['concurrency', '/archive', 2, [200, 200]],
    ['serverless-and-pm2', '/reports', 5, [200, 200, 200, 200, 429]],
    ['skill', '/reports/health', 3, [200, 200, 200]],
  ])('answers as its guide says: %s', async (name, path, count, answers) => {
    expect(await statuses(name, path, count)).toEqual(answers);
  });

  it('counts for all regions', async () => {
    // Whoever has no units waits for the home, which may take its time on a busy machine.
    const all: number[] = [];
    while (!all.includes(429)) all.push(...(await statuses('regions', '/reports', 1)));
    expect(all.filter((each) => each === 200)).toHaveLength(3);
  });

  it('refuses an address, and explains and records what was asked', async () => {
    const body = new URLSearchParams({ ip: '203.0.113.0/24' });
    expect((await fetch(`${urlOf('lists')}/ops/denied`, { method: 'POST', body })).status).toBe(201);
    expect(await statuses('lists', '/products', 1)).toEqual([200]);
    expect(await text(`${urlOf('explain')}/ops/explain/198.51.100.7`)).toContain('ReportsController.list: allowed');
    expect(await text(`${urlOf('usage')}/orgs/acme/calls`, 'POST')).toBe('{"allowed":true}');
    expect(JSON.parse(await text(`${urlOf('usage')}/orgs/acme/usage`))).toMatchObject({ total: 640 });
    expect(await statuses('candidates', '/search', 4)).toEqual([200, 200, 200, 429]);
  });

  it.each(['testing', 'start-testing'])('tests an app without waiting: %s', async (name) => {
    const run = promisify(execFile)(process.execPath, ['--test', join(folder, `out/${name}.js`)], {
      env: ownEnvironment(),
    });
    expect((await run).stdout).toMatch(/^[#ℹ] pass 1$/m);
  });

  it('counts in a store of its own', async () => {
    expect(await statuses('own-stores', '/reports', 3)).toEqual([200, 200, 429]);
  });

  it('blocks an address after five wrong passwords', async () => {
    const guess = { email: 'ann@example.com', password: '12345' };
    const all: number[] = [];
    for (let tries = 0; tries < 6; tries++) all.push((await post('protecting-a-login', '/login', guess)).status);
    expect(all).toEqual([401, 401, 401, 401, 401, 429]);
  });

  it('takes rates from a policy, by tenant', async () => {
    expect([await quotaOfPolicy('acme'), await quotaOfPolicy('umbrella'), await quotaOfPolicy('trial')]).toEqual([
      '5000',
      '500',
      '500',
    ]);
  });

  it('changes a rate, for admins alone', async () => {
    expect(await changeRate({})).toBe(403);
    expect(await changeRate({ authorization: 'Bearer admin' })).toBe(200);
    expect(await statuses('changing-rates', '/reports', 2)).toEqual([200, 429]);
  });

  it('counts plans, tenants, teams and the tokens of calls', async () => {
    const policyOf = async (name: string, path: string, method = 'GET') =>
      (await fetch(urlOf(name) + path, { method, headers: { 'x-user': 'ada', 'x-tenant': 'acme' } })).headers.get(
        'ratelimit-policy',
      );
    expect(await policyOf('plans', '/reports')).toContain('"plan";q=1000');
    expect(await policyOf('fair-shares', '/renders', 'POST')).toContain('"gpu";q=');
    expect(await policyOf('hierarchies', '/reports')).toMatch(/"user";q=20.*"team";q=100.*"org";q=1000/);
    const answer = await post('budgets', '/answers', { org: 'org:1', prompt: 'why' });
    expect([answer.status, await answer.text()]).toEqual([201, 'WHY']);
    expect(await text(`${urlOf('bullmq')}/shops/acme/sync`, 'POST')).toMatch(/^\{"id":"\d+"\}$/);
  });

  it('limits by the rate that the database has', async () => {
    expect([await quotaOf('umbrella'), await quotaOf('acme'), await quotaOf('nobody')]).toEqual(['5', '50', '2']);
  });

  it('shows Prometheus what limits do, by OpenTelemetry', async () => {
    // Other examples of this process have a limit of the same name.
    const refused = async () => {
      const lines = (await text(`${urlOf('prometheus')}/metrics`)).split('\n');
      const line = lines.find(
        (one) => /^nestjs_sluice_decisions_total\{.*"reports".*"refused"/.test(one) && one.includes('"memory"'),
      );
      return Number(/ (\d+)$/.exec(line ?? '')?.[1] ?? 0);
    };
    const before = await refused();
    expect(await statuses('prometheus', '/reports', 3)).toEqual([200, 200, 429]);
    expect(await refused()).toBe(before + 1);
  });

  it('shows Prometheus what limits do, by prom-client', async () => {
    expect(await statuses('prom-client', '/reports', 3)).toEqual([200, 200, 429]);
    const response = await fetch(`${started.get('prom-client')!.url!}/metrics`);
    expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    const scraped = await response.text();
    expect(scraped).toContain('rate_limit_decisions_total{limit="reports",outcome="allowed",source="memory"} 2\n');
    expect(scraped).toMatch(/rate_limit_decisions_total\{limit="reports",outcome="refused",source="\w+"\} 1\n/);
    expect(scraped).toContain('rate_limit_check_seconds_count{source="memory"}');
  });

  it('fails open, closed or locally, once Redis fails', async () => {
    const page = started.get('when-redis-fails')!.url!;
    const send = async (method: string, path: string) => (await fetch(page + path, { method })).status;
    expect([await send('POST', '/payments'), await send('POST', '/login')]).toEqual([201, 201]);
    await redis!.stop();
    const calls = [
      ['GET', '/products'],
      ['POST', '/payments'],
      ['POST', '/login'],
    ] as const;
    const all: number[] = [];
    for (const [method, path] of calls) all.push(await send(method, path));
    expect(all).toEqual([200, 503, 201]);
  });
});
