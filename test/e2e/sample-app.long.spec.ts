import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { until } from '../support/time/until.js';
import { type SampleApp, startSample as startApp } from '../support/processes/sample-app.js';

/** The sample as one file, which starts sooner than the built one, and finds no page. */
const bundledSample = bundledWorker('../../../sample-app/dist/main.js');

const ROUTES = 23;
/** The shortest time in which a limit of the sample has a unit again, in milliseconds. */
const UNIT_BACK_MS = 500;
const MOST_TRIES = 10;
/** The lines are for curl, and are tried with it where it is installed. */
const itWithCurl = spawnSync('curl', ['--version']).status === 0 ? it : it.skip;

/** A line of the tour: what curl would send, and how often. */
interface Line {
  readonly url: string;
  readonly init: RequestInit;
  readonly requests: number;
  /** All of them at once. */
  readonly parallel: boolean;
}

interface Sample extends SampleApp {
  /** The routes, and a line for each. */
  readonly tour: string;
  readonly lines: readonly Line[];
}

describe('the sample app, counting in process', () => {
  let sample: Sample;
  let searchBefore: object | undefined;

  beforeAll(async () => {
    sample = await startSample({ REDIS_URL: '' });
    searchBefore = await rateOfSearch(sample);
  });

  afterAll(() => sample.stop());

  it('says where it counts', () => {
    expect(sample.output).toContain('Counters: in this process');
  });

  it('writes few lines, and the link of its page last', async () => {
    const told = sample.output.split('\n').filter((line) => line !== '' && !line.startsWith('[Nest]'));
    expect(told.at(-1)).toBe(`See it work: ${sample.url}`);
    expect(told.length).toBeLessThanOrEqual(5);
    expect(sample.output).toContain(`curl ${sample.url}tour has a curl line for each route`);
    const page = await fetch(sample.url);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('ratelimit')).toBeNull();
  });

  it('shows the code that limits each route, and a page of the documentation', async () => {
    const response = await fetch(new URL('playground/routes', sample.url));
    const routes = (await response.json()) as { path: string; code: string; docs: string; isTelling?: boolean }[];
    expect(routes).toHaveLength(ROUTES);
    expect(routes.filter(({ isTelling }) => isTelling)).toHaveLength(10);
    for (const { path, code, docs } of routes) {
      expect([path, code]).toEqual([
        path,
        expect.stringMatching(/RateLimit\(|limits?\.for\(|limiters\.\w+\(|outbound\.fetch\(/),
      ]);
      expect(code.match(/[([{]/g)!.length).toBe(code.match(/[)\]}]/g)!.length);
      const page = await fetch(new URL(docs, sample.url));
      expect([docs, page.status, page.headers.get('content-type')]).toEqual([docs, 200, 'text/plain; charset=utf-8']);
      expect(await page.text()).toMatch(/^# /);
    }
    expect(routes.find(({ path }) => path === '/forecast')!.code).toContain("algo: 'token-bucket', rate: 3");
    for (const other of ['guides/console.md', '..%2Fpackage.json/x', 'guides/..%2F..%2Fpackage.json']) {
      expect((await fetch(new URL(`playground/docs/${other}`, sample.url))).status).toBe(404);
    }
  });

  it('tells of its limits on every route and refuses past them', async () => {
    expect(sample.lines).toHaveLength(ROUTES);
    for (const line of sample.lines) {
      const responses = await expectLimited(line);
      // Both routes of the reports controller share their counters.
      if (!line.url.endsWith('/reports/1')) expect(responses[0]?.status).not.toBe(429);
    }
  });

  it('holds the requests of a shaped route until their turn', async () => {
    const line = sample.lines.find(({ url }) => url.includes('/thumbnails'))!;
    await sleep(2000); // 4 units at 2 a second: whatever the route was asked before has left by then
    const sent = Date.now();
    const allowed = (await send(line)).filter(({ status }) => status === 200);
    const bodies = (await Promise.all(allowed.map((response) => response.json()))) as { renderedAt: string }[];
    const times = bodies.map(({ renderedAt }) => Date.parse(renderedAt)).sort((a, b) => a - b);
    expect(times.length).toBeGreaterThanOrEqual(4);
    // Each leaves half a second after the one before it, less what the clock is rounded by.
    for (const [index, time] of times.entries()) expect(time - sent).toBeGreaterThanOrEqual(500 * index - 10);
  });

  itWithCurl('has lines for curl that show what they say', async () => {
    let archive: string[] = [];
    let statuses: string[] = [];
    // On a busy machine they may come one after the other.
    for (let tries = 0; tries < MOST_TRIES && statuses.filter((status) => status === '429').length < 3; tries++) {
      archive = await curl(sample, '/exports/archive');
      statuses = archive.map((line) => line.slice(0, 3));
    }
    expect(statuses.toSorted()).toEqual(['', '200', '200', '429', '429', '429']);
    // Work of 2 seconds, of which the leases would last for 10.
    const waits = archive.flatMap((line) => /Retry-After: (\d+)$/.exec(line)?.[1] ?? []).map(Number);
    expect(waits).toHaveLength(3);
    for (const wait of waits) expect(wait).toBeLessThan(10);
  });

  itWithCurl('has lines whose answers are lines of their own', async () => {
    const rates = await curl(sample, '/rates/search');
    // A status stands at the beginning of a line, whatever body came before it.
    expect(rates.join('\n').split('HTTP/1.1 ')).toHaveLength(7);
    expect(rates.filter((line) => line.startsWith('HTTP/1.1 '))).toHaveLength(6);
  });

  it('changes a rate to another one than it is', async () => {
    expect(await rateOfSearch(sample)).toMatchObject({ rate: 30 });
    expect(searchBefore).toMatchObject({ rate: 10 });
  });

  it('keeps units for a tenant that another one left none', async () => {
    const { url } = sample.lines.find((line) => line.url.endsWith('/renders'))!;
    const wait = async (tenant: string) => {
      const { status, headers } = await fetch(url, { headers: { 'x-tenant': tenant } });
      expect(status).toBe(429);
      return Number(headers.get('retry-after'));
    };
    // A token comes each 5 minutes: the first is for the one that has had none.
    const [modest, greedy] = [await wait('globex'), await wait('acme')];
    expect(modest).toBeLessThanOrEqual(300);
    expect(greedy).toBeGreaterThan(300);
  });

  it('has no queue of jobs', async () => {
    const answer = await fetch(new URL('syncs', sample.url), { method: 'POST' });
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ message: 'Jobs need Redis: set REDIS_URL' });
    expect(sample.output).toContain('Jobs: set REDIS_URL to have a queue of BullMQ.');
  });

  it('says which port is taken, and ends', async () => {
    const { port } = new URL(sample.lines[0]!.url);
    await expect(startSample({ REDIS_URL: '', PORT: port }, await bundledSample())).rejects.toThrow(
      `Port ${port} is taken`,
    );
  });

  it('says what is wrong with its settings, and ends', async () => {
    const started = startSample({ REDIS_URL: '', DEMO_TRAFFIC: 'yes' }, await bundledSample());
    await expect(started).rejects.toThrow("DEMO_TRAFFIC: expected on or off, received 'yes'");
  });

  it('ends when it is told to', async () => {
    expect(await sample.stop()).toBe('SIGTERM');
  });
});

describe('the sample app, with a Redis that is not there', () => {
  it('says where it counts meanwhile', async () => {
    const sample = await startSample({ REDIS_URL: 'redis://127.0.0.1:1' }, await bundledSample());
    expect(sample.output).toContain('Counters: in this process, until there is an answer of Redis at 127.0.0.1:1.');
    await sample.stop();
  });
});

describe('the sample app, counting on Redis', () => {
  let sample: Sample;
  let redis: Redis;

  beforeAll(async () => {
    const url = database(9);
    redis = new Redis(url, { lazyConnect: true });
    await redis.connect();
    sample = await startSample({ REDIS_URL: url }, await bundledSample());
  });

  afterAll(async () => {
    redis.disconnect();
    await sample.stop();
  });

  it('tells of its limits on every route and refuses past them', async () => {
    expect(sample.output).toContain('Counters: Redis at ');
    expect(sample.lines).toHaveLength(ROUTES);
    for (const line of sample.lines) await expectLimited(line);
  });

  it('counts there', async () => {
    const timeToLive = await redis.pttl('sluice:{ip:127.0.0.1}::login:sl:block');
    expect(timeToLive).toBeGreaterThan(0);
    expect(timeToLive).toBeLessThanOrEqual(15 * 60_000);
  });

  it('makes visitors up, with identities of their own', () =>
    until(async () => (await redis.exists('sluice:{ip:203.0.113.1}::feed:td')) === 1));

  it('shows them in its console', () =>
    until(async () => {
      const response = await fetch(new URL('ops/limits/api/overview?range=5m', sample.url));
      const { totals } = (await response.json()) as { totals: Record<string, { allowed: number }> };
      return (totals['feed']?.allowed ?? 0) > 0;
    }));

  it('gives each job of a queue a time of its own', async () => {
    const url = new URL('syncs', sample.url);
    expect(sample.output).toContain(`Jobs: curl -d "shop=acme" ${url.href} adds three of a shop`);
    const since = Date.now();
    const body = new URLSearchParams({ shop: `shop-${since}` });
    expect((await fetch(url, { method: 'POST', body })).status).toBe(202);
    const times = async () => {
      const syncs = (await (await fetch(url)).json()) as { shop: string; syncedAt: string }[];
      return syncs.flatMap(({ shop, syncedAt }) => (shop === `shop-${since}` ? Date.parse(syncedAt) - since : []));
    };
    await until(async () => (await times()).length === 3);
    for (const [index, time] of (await times()).entries()) expect(time).toBeGreaterThanOrEqual(500 * index);
  });

  it('opens its console to nobody who calls this machine by another name', async () => {
    const page = new URL('ops/limits', sample.url);
    expect(await statusAt(page, 'localhost:3000')).toBe(200);
    expect(await statusAt(page, 'rebound.example.org:3000')).toBe(403);
  });
});

/**
 * Sends what a line says and expects a refusal at its end; a busy machine may be so slow that units come back meanwhile, and sends
 * it anew. Resolves with the answers to what was sent first. (A server that is kept between runs may still hold counters, so any of
 * them may be a refusal.)
 */
async function expectLimited(line: Line): Promise<Response[]> {
  // An overload is no fault of the client's.
  const refusal = line.url.endsWith('/previews') ? 503 : 429;
  const isRefused = ({ status }: Response) => status === refusal;
  const sent: Response[][] = [];
  for (;;) {
    const start = performance.now();
    const responses = await send(line);
    sent.push(responses);
    if (line.parallel ? responses.some(isRefused) : isRefused(responses.at(-1)!)) break;
    if (performance.now() - start < UNIT_BACK_MS || sent.length === MOST_TRIES) {
      throw new Error(`${line.url} answered ${responses.map(({ status }) => status).join(', ')}`);
    }
  }
  for (const response of sent.flat()) {
    const { headers } = response;
    expect(headers.get('ratelimit-policy')).toMatch(/^"[^"]+";q=\d+;w=\d+/);
    expect(headers.get('ratelimit')).toMatch(/^"[^"]+";r=\d+;t=\d+/);
    if (isRefused(response)) expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  }
  return sent[0]!;
}

/** Runs the line of a path as it stands, in a shell, and resolves with the lines that it shows. */
async function curl({ tour }: Sample, path: string): Promise<string[]> {
  const line = tour.split('\n').find((each) => each.startsWith('  curl ') && each.includes(`${path}#`))!;
  const { stdout } = await promisify(execFile)('sh', ['-c', line]);
  return stdout.split(/\r?\n/);
}

/** Sends what a line says: one request after the other, or all at once. */
async function send({ url, init, requests, parallel }: Line): Promise<Response[]> {
  if (parallel) return Promise.all(Array.from({ length: requests }, () => fetch(url, init)));
  const responses: Response[] = [];
  while (responses.length < requests) {
    const response = await fetch(url, init);
    responses.push(response);
    // What a call of a model held is settled once its answer has been read.
    await response.clone().text();
  }
  return responses;
}

function parse(line: string): Line {
  const [, url, requests] = / "([^"]+)#\[1-(\d+)\]"$/.exec(line) ?? [];
  if (url === undefined) throw new Error(`Not a line for curl: ${line}`);
  const headers = [...line.matchAll(/ -H "([^:]+): ([^"]+)"/g)].map(([, name, value]) => [name!, value!] as const);
  const body = / -d "([^"]+)"/.exec(line)?.[1];
  const init =
    body === undefined
      ? { headers: Object.fromEntries(headers) }
      : { method: 'POST', headers: Object.fromEntries(headers), body: new URLSearchParams(body) };
  return { url, init, requests: Number(requests), parallel: line.includes(' -Z --parallel-immediate ') };
}

/** The status of an answer to somebody who calls the host so. */
async function statusAt(url: URL, host: string): Promise<number | undefined> {
  const [response] = (await once(get(url, { headers: { host } }), 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

async function rateOfSearch({ url }: Sample): Promise<object | undefined> {
  const rates = (await (await fetch(new URL('rates', url))).json()) as { name: string; options: object }[];
  return rates.find(({ name }) => name === 'search')?.options;
}

async function startSample(env: Record<string, string>, main?: string): Promise<Sample> {
  const app = await startApp(env, main);
  const tour = await (await fetch(new URL('tour', app.url))).text();
  const lines = tour.split('\n').flatMap((line) => (line.startsWith('  curl ') ? [parse(line)] : []));
  return { ...app, tour, lines };
}

/** A database of the tests' server that no other test uses. */
function database(number: number): string {
  const url = new URL(process.env['TEST_REDIS_URL']!);
  url.pathname = `/${number}`;
  return url.href;
}
