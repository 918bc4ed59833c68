import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';

const MAIN = fileURLToPath(new URL('../../sample-app/dist/main.js', import.meta.url));
/** These only end what hangs. */
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
const ROUTES = 15;
/** Its lines are for curl, and are tried with it where it is installed. */
const itWithCurl = spawnSync('curl', ['--version']).status === 0 ? it : it.skip;

/** A line that the sample prints: what curl would send, and how often. */
interface Line {
  readonly url: string;
  readonly init: RequestInit;
  readonly requests: number;
  /** All of them at once. */
  readonly parallel: boolean;
}

interface Sample {
  readonly output: string;
  readonly lines: readonly Line[];
  /** Resolves to the signal or the exit code with which it ended. */
  stop(): Promise<string | number | null>;
}

describe('the sample app, counting in process', () => {
  let sample: Sample;

  beforeAll(async () => {
    sample = await startSample({ REDIS_URL: '' });
  }, START_TIMEOUT_MS);

  afterAll(() => sample.stop());

  it('says where it counts', () => {
    expect(sample.output).toContain('Counters: in this process');
  });

  it('tells of its limits on every route and refuses past them', async () => {
    expect(sample.lines).toHaveLength(ROUTES);
    for (const line of sample.lines) {
      const responses = await send(line);
      expectLimited(line, responses);
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
    expect(times).toHaveLength(4);
    // The last leaves three times half a second after the first came, less what the clock is rounded by.
    expect(times[3]! - sent).toBeGreaterThanOrEqual(1490);
  });

  itWithCurl('prints lines for curl that show what they say', async () => {
    const archive = await curl(sample, '/exports/archive');
    const statuses = archive.map((line) => line.slice(0, 3));
    expect(statuses.toSorted()).toEqual(['', '200', '200', '429', '429', '429']);
    // Work of 2 seconds, of which the leases would last for 10.
    const waits = archive.flatMap((line) => /Retry-After: (\d+)$/.exec(line)?.[1] ?? []).map(Number);
    expect(waits).toHaveLength(3);
    for (const wait of waits) expect(wait).toBeLessThan(10);
  });

  itWithCurl('prints lines whose answers are lines of their own', async () => {
    const rates = await curl(sample, '/rates/search');
    // A status stands at the beginning of a line, whatever body came before it.
    expect(rates.join('\n').split('HTTP/1.1 ')).toHaveLength(7);
    expect(rates.filter((line) => line.startsWith('HTTP/1.1 '))).toHaveLength(6);
  });

  it('changes a rate to another one than it is', async () => {
    const line = sample.lines.find(({ url }) => url.includes('/rates/search'))!;
    const list = (await (await fetch(new URL('/rates', line.url))).json()) as { name: string; options: object }[];
    const before = await startSample({ REDIS_URL: '' });
    const url = new URL('/rates', before.lines[0]!.url);
    const fresh = (await (await fetch(url)).json()) as typeof list;
    await before.stop();
    const rateOf = (rates: typeof list) => rates.find(({ name }) => name === 'search')?.options;
    expect(rateOf(list)).toMatchObject({ rate: 30 });
    expect(rateOf(fresh)).toMatchObject({ rate: 10 });
  });

  it('says which port is taken, and ends', async () => {
    const { port } = new URL(sample.lines[0]!.url);
    await expect(startSample({ REDIS_URL: '', PORT: port })).rejects.toThrow(`Port ${port} is taken`);
  });

  it('ends when it is told to', async () => {
    expect(await sample.stop()).toBe('SIGTERM');
  });
});

describe('the sample app, with a Redis that is not there', () => {
  it('says where it counts meanwhile', async () => {
    const sample = await startSample({ REDIS_URL: 'redis://127.0.0.1:1' });
    expect(sample.output).toContain('Counters: in this process, until there is an answer of Redis at 127.0.0.1:1.');
    await sample.stop();
  });
});

describe('the sample app, counting on Redis', () => {
  let sample: Sample;
  let url: string;

  beforeAll(async () => {
    url = database(9);
    sample = await startSample({ REDIS_URL: url });
  }, START_TIMEOUT_MS);

  afterAll(() => sample.stop());

  it('tells of its limits on every route and refuses past them', async () => {
    expect(sample.output).toContain('Counters: Redis at ');
    expect(sample.lines).toHaveLength(ROUTES);
    for (const line of sample.lines) expectLimited(line, await send(line));
  });

  it('counts there', async () => {
    const redis = new Redis(url, { lazyConnect: true });
    await redis.connect();
    const timeToLive = await redis.pttl('sluice:{ip:127.0.0.1}::login:sl:block');
    redis.disconnect();
    expect(timeToLive).toBeGreaterThan(0);
    expect(timeToLive).toBeLessThanOrEqual(15 * 60_000);
  });
});

/** A server that is kept between runs may still hold counters, so only the last answer is sure to be a refusal. */
function expectLimited(line: Line, responses: readonly Response[]): void {
  expect(responses).toHaveLength(line.requests);
  for (const { headers } of responses) {
    expect(headers.get('ratelimit-policy')).toMatch(/^"[^"]+";q=\d+;w=\d+/);
    expect(headers.get('ratelimit')).toMatch(/^"[^"]+";r=\d+;t=\d+/);
  }
  const refused = responses.filter(({ status }) => status === 429);
  expect(refused).not.toEqual([]);
  if (!line.parallel) expect(responses.at(-1)?.status).toBe(429);
  for (const { headers } of refused) expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
}

/** Runs the line of a path as it was printed, in a shell, and resolves with the lines that it shows. */
async function curl({ output }: Sample, path: string): Promise<string[]> {
  const line = output.split('\n').find((each) => each.startsWith('  curl ') && each.includes(`${path}#`))!;
  const { stdout } = await promisify(execFile)('sh', ['-c', line]);
  return stdout.split(/\r?\n/);
}

/** Sends what a line says: one request after the other, or all at once. */
async function send({ url, init, requests, parallel }: Line): Promise<Response[]> {
  if (parallel) return Promise.all(Array.from({ length: requests }, () => fetch(url, init)));
  const responses: Response[] = [];
  while (responses.length < requests) responses.push(await fetch(url, init));
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

/** Starts the built sample on a free port. Rejects with what it wrote if it ends first. */
async function startSample(env: Record<string, string>): Promise<Sample> {
  const child = spawn(process.execPath, [MAIN], {
    env: { ...process.env, PORT: '0', NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // Not 'exit': what it wrote last may come after that.
  const closed = once(child, 'close') as Promise<[code: number | null, signal: string | null]>;
  let output = '';
  const started = new Promise<void>((resolve) => {
    const read = (text: string) => {
      output += text;
      if (output.includes('Each line asks')) resolve();
    };
    child.stdout.setEncoding('utf8').on('data', read);
    child.stderr.setEncoding('utf8').on('data', read);
  });
  const stop = async () => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    child.kill();
    const [code, signal] = await closed;
    clearTimeout(timer);
    return signal ?? code;
  };
  const late = sleep(START_TIMEOUT_MS - 1000, 'late' as const, { ref: false });
  const outcome = await Promise.race([started, closed.then(() => 'ended' as const), late]);
  if (outcome !== undefined) {
    await stop();
    throw new Error(`The sample ${outcome === 'late' ? 'did not start in time' : 'ended'}:\n${output}`);
  }
  const lines = output.split('\n').flatMap((line) => (line.startsWith('  curl ') ? [parse(line)] : []));
  return { output, lines, stop };
}

/** A database of the tests' server that no other test uses. */
function database(number: number): string {
  const url = new URL(process.env['TEST_REDIS_URL']!);
  url.pathname = `/${number}`;
  return url.href;
}
