import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { runProgram } from '../../lib/cli/program.js';
import { Progress } from '../../lib/cli/simulate/simulate.command.js';
import { LogFolder, runProgram as runBuilt } from './run-program.js';

const logs = new LogFolder();
const ESCAPE = '\u001B';
const LIMIT = ['--limit', 'sliding-window:2/1m'];

/** Runs `simulate` here, with streams that are terminals, or none. */
async function simulate(args: readonly string[], { isTTY = true, columns = 200 } = {}) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  Object.assign(stdout, { isTTY, columns, getColorDepth: () => 8 });
  const written = Promise.all([text(stdout), text(stderr)]);
  const code = await runProgram(['simulate', ...args], { stdin: Readable.from([]), stdout, stderr });
  stdout.end();
  stderr.end();
  const [out, error] = await written;
  return { code, stdout: out, stderr: error };
}

/** A request of a log. */
const line = (path: string, status: number, index: number) => ({
  time: Date.UTC(2026, 8, 21, 10, 0, index),
  ip: '203.0.113.7',
  user: 'eva',
  path,
  status,
});

beforeAll(async () => {
  const requests = [
    line('/api/orders?page=2', 200, 0),
    line('/api/orders', 200, 1),
    line('/api/items', 201, 2),
    line('/login', 401, 3),
    line('/login', 401, 4),
    line('/login', 200, 5),
  ];
  await logs.write('access.ndjson', requests);
  const server = requests.map(
    ({ ip, user, path, status }, index) =>
      `${ip} - ${user} [21/Sep/2026:10:00:0${index} +0000] "GET ${path} HTTP/1.1" ${status} 17`,
  );
  await logs.write('access.log', server);
});

describe('filters', () => {
  it.each([
    ['a path', ['--path', '/login'], 3],
    ['a path whatever its query', ['--path', '/api/orders'], 2],
    ['paths that begin so', ['--path', '/api/*'], 3],
    ['several paths', ['--path', '/api/items', '--path', '/log*'], 4],
    ['a status', ['--status', '401'], 2],
    ['a class of statuses', ['--status', '2xx'], 4],
    ['several statuses', ['--status', '201', '--status', '4XX'], 3],
    ['both', ['--path', '/login', '--status', '2xx'], 1],
  ])('take requests of %s, of either format', async (_, args, requests) => {
    for (const file of ['access.ndjson', 'access.log']) {
      const report = await logs.report(...LIMIT, ...args, logs.path(file));
      expect(report).toMatchObject({ requests, input: { lines: 6, filtered: 6 - requests } });
    }
  });

  it('say how much they leave out, also in the built program', async () => {
    const args = ['simulate', ...LIMIT, '--status', '4xx', logs.path('access.log')];
    const { code, stdout } = await runBuilt(args);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^2 requests of /);
    expect(stdout).toContain('\n4 of 6 lines are of other paths or statuses.\n');
  });

  it.each([
    ['no status', ['--status', '20'], 2, "--status: expected a status, such as 404 or 2xx, received '20'"],
    ['no path', ['--path', ''], 2, "--path: expected a path, such as /login or '/api/*', received ''"],
    ['what no request has', ['--path', '/nowhere'], 1, "'--path' and '--status' leave none of 6 requests"],
  ])('refuse %s', async (_, args, code, message) => {
    const run = await logs.simulate(...LIMIT, ...args, logs.path('access.log'));
    expect(run).toMatchObject({ code, stderr: expect.stringContaining(message) });
  });

  it('are for logs alone', async () => {
    const run = await logs.simulate(...LIMIT, '--generate', 'poisson:1/s', '--path', '/a');
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining('--path: the option is only for a log') });
  });
});

describe('the limits of a policy', () => {
  beforeAll(async () => {
    await logs.write('limits.yaml', [
      'limits:',
      '  burst: { algo: sliding-window, rate: 2, interval: 1m }',
      '  people: { algo: fixed-window, rate: 3, interval: 1h, key: user, mode: shadow }',
      '  slots: { algo: concurrency, limit: 2, ttl: 1m }',
      '  unused: { algo: gcra, rate: 1, interval: 1s, mode: off }',
      '  ofCode: { rate: 5 }',
    ]);
    await logs.write('wrong.yaml', ['limits:', '  burst: { algo: gcra, raet: 2 }']);
    await logs.write('empty.yaml', ['limits:', '  ofCode: { rate: 5 }']);
  });

  it('are simulated with their names, modes and keys, beside others', async () => {
    const { limits } = await logs.report('--policy', logs.path('limits.yaml'), '--limit', 'gcra:9/s@own', 'access.log');
    expect(limits.map(({ name, limit, shadow, refused }) => ({ name, limit, shadow, refused }))).toEqual([
      { name: 'own', limit: 'gcra:9/s@own', shadow: false, refused: 0 },
      { name: 'burst', limit: 'sliding-window:2/1m', shadow: false, refused: 4 },
      { name: 'people', limit: 'fixed-window:3/1h', shadow: true, refused: 0 },
    ]);
    expect(limits[2]!.worstStretch).toMatchObject({ key: 'eva' });
  });

  it.each([
    ['what is wrong', 'wrong.yaml', 1, "unknown option 'raet'. Did you mean 'rate'?"],
    ['none', 'empty.yaml', 1, "has no limit that can be simulated. Add one with an 'algo'"],
    ['another file', 'access.log', 2, 'is not a policy file: expected a name that ends with .yaml'],
  ])('refuse %s', async (_, file, code, message) => {
    const run = await logs.simulate('--policy', file, 'access.log');
    expect(run).toMatchObject({ code, stderr: expect.stringContaining(message) });
  });

  it('refuse a name that is given twice', async () => {
    const run = await logs.simulate('--policy', 'limits.yaml', '--limit', 'gcra:1/s@burst', 'access.log');
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining("two limits have the name 'burst'") });
  });
});

describe('on a terminal', () => {
  afterEach(() => {
    for (const name of ['NO_COLOR', 'FORCE_COLOR', 'COLUMNS']) delete process.env[name];
  });

  const args = [...LIMIT, '--limit', 'fixed-window:1/1h@first', 'access.log'];

  it('has colours, unless NO_COLOR says no', async () => {
    const { stdout } = await simulate(args);
    expect(stdout).toContain(`${ESCAPE}[1mlimit `);
    expect(stdout).toContain(`${ESCAPE}[31mrefused `);
    process.env['NO_COLOR'] = '1';
    expect((await simulate(args)).stdout).not.toContain(ESCAPE);
  });

  it('has none in a pipe, unless FORCE_COLOR says so', async () => {
    expect((await simulate(args, { isTTY: false })).stdout).not.toContain(ESCAPE);
    process.env['FORCE_COLOR'] = '1';
    expect((await simulate(args, { isTTY: false })).stdout).toContain(`${ESCAPE}[1m`);
    process.env['FORCE_COLOR'] = '0';
    expect((await simulate(args)).stdout).not.toContain(ESCAPE);
  });

  it('has the same words at any width, and fits', async () => {
    process.env['NO_COLOR'] = '1';
    const wide = (await simulate(args)).stdout;
    expect(wide).toContain('most admitted\n');
    const narrow = (await simulate(args, { columns: 80 })).stdout;
    expect(narrow).toMatch(/\n {2}most admitted: 1 in 1 min: ip:203\.0\.113\.7 from 2026-/);
    expect(Math.max(...narrow.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    process.env['COLUMNS'] = '80';
    expect((await simulate(args, { isTTY: false })).stdout).toBe(narrow);
    delete process.env['COLUMNS'];
    expect((await simulate(args, { isTTY: false, columns: 80 })).stdout).toBe(wide);
  });
});

/** Reads a file of 100 MB in steps of 10 MB, each in so much time. */
async function shown(stepMs: number, isTTY: boolean, total: number | undefined = 100e6): Promise<string> {
  const stream = Object.assign(new PassThrough(), { isTTY });
  let now = 0;
  const progress = new Progress(stream, total, () => now);
  for (let step = 0; step < 10; step++) {
    now += stepMs;
    progress.add(10e6);
  }
  progress.end();
  stream.end();
  return text(stream);
}

describe('progress', () => {
  it('is shown where input takes long, and cleared', async () => {
    const lines = (await shown(1000, true)).split(`\r${ESCAPE}[K`);
    expect(lines[1]).toBe('10% of 100.0 MB, 9 s left');
    expect(lines.at(-2)).toBe('100% of 100.0 MB, 0 ms left');
    expect(lines.at(-1)).toBe('');
  });

  it('is shown without an end where nobody knows it', async () => {
    const stream = Object.assign(new PassThrough(), { isTTY: true });
    let now = 0;
    const progress = new Progress(stream, undefined, () => now);
    now = 1000;
    progress.add(2.5e6);
    stream.end();
    expect(await text(stream)).toBe(`\r${ESCAPE}[K2.5 MB read`);
  });

  it('is not shown in a pipe, nor of short input', async () => {
    expect(await shown(1000, false)).toBe('');
    expect(await shown(10, true)).toBe('');
  });
});
