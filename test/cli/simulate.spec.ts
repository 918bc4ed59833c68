import { readFile, writeFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { LogFolder, runProgram } from './run-program.js';

const logs = new LogFolder();

/** Numbers from 0 to 1, the same in each run. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

interface Asked {
  readonly time: number;
  readonly user: string;
  readonly units: number;
}

const START = Date.UTC(2026, 8, 21, 10);

/** Requests of some users, in bursts. */
function someRequests(count: number): Asked[] {
  const random = randomNumbers(7);
  let time = START;
  return Array.from({ length: count }, () => {
    time += random() < 0.8 ? Math.floor(random() * 20) : Math.floor(random() * 900);
    return { time, user: `user-${Math.floor(random() * random() * 6)}`, units: 1 + Math.floor(random() * 3) };
  });
}

const sum = (all: readonly Asked[]) => all.reduce((total, { units }) => total + units, 0);

const ofUser = (user: string, all: readonly Asked[]) => all.filter((each) => each.user === user).length;

/** A limit of so many units in any stretch of so many milliseconds, by a list of all that was ever admitted. */
function logModel(rate: number, intervalMs: number) {
  return ({ time, user, units }: Asked, admitted: readonly Asked[]) =>
    sum(admitted.filter((each) => each.user === user && each.time > time - intervalMs)) + units <= rate;
}

/** GCRA as its definition: the theoretical arrival time of all that was admitted, in units of 1 / rate milliseconds. */
function gcraModel(rate: number, intervalMs: number, burst: number) {
  return ({ time, user, units }: Asked, admitted: readonly Asked[]) => {
    let arrival = 0;
    for (const each of admitted) {
      if (each.user === user) arrival = Math.max(arrival, each.time * rate) + each.units * intervalMs;
    }
    return Math.max(arrival, time * rate) + units * intervalMs - burst * intervalMs <= time * rate;
  };
}

/** The most units that a user was admitted in a stretch of so many milliseconds. */
function worstOf(admitted: readonly Asked[], lengthMs: number): number {
  return Math.max(
    ...admitted.map(({ time, user }) =>
      sum(admitted.filter((each) => each.user === user && each.time > time - lengthMs && each.time <= time)),
    ),
  );
}

describe('a simulation of a log', () => {
  const requests = someRequests(1500);
  const models = [logModel(12, 1000), gcraModel(20, 5000, 30)];
  const admitted: Asked[] = [];
  const refusedBy = models.map((): Asked[] => []);
  const refused: Asked[] = [];
  for (const each of requests) {
    const fits = models.map((model) => model(each, admitted));
    for (const [index, isFitting] of fits.entries()) if (!isFitting) refusedBy[index]!.push(each);
    (fits.every(Boolean) ? admitted : refused).push(each);
  }
  const lines = requests.map(({ time, user, units }) => ({ time: new Date(time).toISOString(), user, units }));
  const args = ['--limit', 'sliding-log:12/1s', '--limit', 'gcra:20/5s,burst=30@steady', '--key', 'user'];

  beforeAll(() => logs.write('access.ndjson', lines));

  it('counts as a list of all requests does', async () => {
    expect(Math.min(...refusedBy.map((each) => each.length))).toBeGreaterThan(50);

    const report = await logs.report(...args, '--cost', 'units', 'access.ndjson');

    expect(report).toMatchObject({ requests: 1500, allowed: admitted.length, refused: refused.length });
    expect(report.input).toEqual({
      source: 'access.ndjson',
      format: 'ndjson',
      lines: 1500,
      skipped: { count: 0, first: [] },
      outOfOrder: 0,
      late: 0,
    });
    expect(report.limits.map(({ name }) => name)).toEqual(['sliding-log:12/1s', 'steady']);
    expect(report.limits.map((each) => each.refused)).toEqual(refusedBy.map((each) => each.length));
    expect(report.limits.map((each) => each.worstStretch?.units)).toEqual([
      worstOf(admitted, 1000),
      worstOf(admitted, 5000),
    ]);
    const users = [...new Set(requests.map(({ user }) => user))];
    const byKey = users
      .map((key) => ({
        key,
        allowed: ofUser(key, admitted),
        refused: ofUser(key, refused),
        refusedBy: report.limits.map(({ name }, index) => ({ limit: name, refused: ofUser(key, refusedBy[index]!) })),
      }))
      .filter((each) => each.refused > 0)
      .toSorted((one, other) => other.refused - one.refused);
    expect(report.keys).toEqual({ seen: users.length, forgotten: 0, forgottenCounting: 0, top: byKey });
    const { timeline } = report;
    expect(timeline.allowed.reduce((total, each) => total + each)).toBe(admitted.length);
    expect(timeline.refused.reduce((total, each) => total + each)).toBe(refused.length);
  });

  it('tells the same of the standard input, with other line ends and a byte order mark', async () => {
    const expected = await logs.report(...args, '--cost', 'units', 'access.ndjson');
    const text = `\uFEFF${lines.map((line) => JSON.stringify(line)).join('\r\n')}`;
    const { stdout } = await runProgram(['simulate', ...args, '--cost', 'units', '--json', '-'], { input: text });
    const { input, ...told } = JSON.parse(stdout) as typeof expected;
    expect(input).toEqual({ ...expected.input, source: 'the standard input' });
    expect(told).toEqual({ ...expected, input: undefined });
  });

  it('sorts lines that come late by less than --reorder, and takes the others at the latest time before', async () => {
    const random = randomNumbers(3);
    const shuffled = lines
      .map((line, index) => ({ line, at: requests[index]!.time + Math.floor(random() * 5000) }))
      .toSorted((one, other) => one.at - other.at)
      .map(({ line }) => line);
    await logs.write('shuffled.ndjson', shuffled);
    // Lines of one time stay in their order.
    await logs.write(
      'sorted.ndjson',
      shuffled.toSorted((one, other) => one.time.localeCompare(other.time)),
    );
    const told = (window: string, log: string) => logs.report(...args, '--cost', 'units', '--reorder', window, log);

    const sorted = await told('1h', 'shuffled.ndjson');
    const expected = await told('1h', 'sorted.ndjson');
    const asTheyAre = await told('0s', 'shuffled.ndjson');

    expect(sorted.input.outOfOrder).toBeGreaterThan(500);
    expect(sorted.input.late).toBe(0);
    expect({ ...sorted, input: undefined }).toEqual({ ...expected, input: undefined });
    expect(asTheyAre.input).toMatchObject({ outOfOrder: sorted.input.outOfOrder, late: sorted.input.outOfOrder });
    expect(asTheyAre.requests).toBe(1500);
    expect(asTheyAre.to).toBe(sorted.to);
  });
});

describe('formats', () => {
  const TIMES = ['10:00:00', '10:00:00', '10:00:00', '10:00:01', '10:00:59'];
  const ends = {
    common: '',
    combined: ' "https://example.com/?a=\\"b\\"" "Mozilla/5.0 (X11)"',
    nginx: ' "-" "curl/8.0" 0.004 "203.0.113.9"',
  };
  const linesOf = (end: string) =>
    TIMES.map((time) => `203.0.113.7 - eva [21/Sep/2026:${time} +0200] "GET /reports?page=2 HTTP/1.1" 200 1024${end}`);
  const told = {
    requests: 5,
    allowed: 3,
    refused: 2,
    from: '2026-09-21T08:00:00.000Z',
    to: '2026-09-21T08:00:59.000Z',
  };
  const LIMIT = ['--limit', 'fixed-window:3/1m'];

  it.each(Object.entries(ends))('%s is found by the first lines', async (format, end) => {
    await logs.write(`${format}.log`, linesOf(end));
    const report = await logs.report(...LIMIT, `${format}.log`);
    expect(report).toMatchObject({ ...told, input: { format, lines: 5, skipped: { count: 0 } } });
    expect(report.keys.top).toMatchObject([{ key: 'ip:203.0.113.7', refused: 2 }]);
  });

  it('apache is common or combined, and the others are only what they are', async () => {
    await logs.write('mixed.log', [...linesOf(ends.common).slice(0, 2), ...linesOf(ends.combined).slice(2)]);
    expect(await logs.report(...LIMIT, '--format', 'apache', 'mixed.log')).toMatchObject(told);
    const common = await logs.report(...LIMIT, '--format', 'common', 'mixed.log');
    expect(common).toMatchObject({ requests: 2, input: { lines: 5, skipped: { count: 3 } } });
    expect(common.input.skipped.first[0]).toMatchObject({ line: 3, reason: "is not of the format 'common'" });
  });

  it.each([
    ['user', 'eva'],
    ['{method} {path}', 'GET /reports'],
    ['{ip}:{status}', '203.0.113.7:200'],
    ['agent', 'Mozilla/5.0 (X11)'],
    ['global', 'global'],
  ])('of web servers have the key %s', async (key, identity) => {
    await logs.write('keys.log', linesOf(ends.combined));
    const report = await logs.report(...LIMIT, '--key', key, 'keys.log');
    expect(report.keys.top).toMatchObject([{ key: identity, refused: 2 }]);
  });

  it.each([
    [{ time: START, ip: '203.0.113.7' }, [], 'ip:203.0.113.7'],
    [{ ts: START / 1000 + 0.25, remote_addr: '2001:db8:1:2:3:4:5:6' }, [], 'ip:2001:db8:1:2::'],
    [{ '@timestamp': '2026-09-21T12:00:00.5+02:00', user: { id: 7 } }, ['--key', 'user.id'], '7'],
    [{ timestamp: '2026-09-21 10:00:00,123', 'user.id': 'eva' }, ['--key', 'user.id'], 'eva'],
    [{ at: String(START * 1000), a: 'x', b: true }, ['--key', '{a}/{b}', '--time', 'at'], 'x/true'],
    ['{"time":1790000000,"__proto__":"odd"}', ['--key', '__proto__'], 'odd'],
    [{ time: START, user: '__proto__' }, ['--key', 'user'], '__proto__'],
    [{ time: START, user: 'constructor' }, ['--key', 'user'], 'constructor'],
  ])('ndjson such as %j has its key with the options %j', async (line, args, key) => {
    await logs.write('one.ndjson', [line, line]);
    const report = await logs.report('--limit', 'fixed-window:1/1m', ...args, 'one.ndjson');
    expect(report).toMatchObject({ requests: 2, refused: 1, keys: { top: [{ key, allowed: 1, refused: 1 }] } });
  });

  it('a limit may have a key of its own', async () => {
    const users = ['a', 'a', 'b', 'b', 'c', 'c'].map((user) => ({ time: START, user }));
    await logs.write('users.ndjson', users);
    const limits = ['--limit', 'fixed-window:1/1m@each', '--limit', 'fixed-window:2/1m,key=global@all'];
    const report = await logs.report(...limits, '--key', 'user', 'users.ndjson');
    expect(report).toMatchObject({ allowed: 2, refused: 4, keys: { seen: 4 } });
    expect(report.limits.map(({ refused }) => refused)).toEqual([2, 3]);
    expect(report.keys.top.find(({ key }) => key === 'global')?.refusedBy).toEqual([{ limit: 'all', refused: 3 }]);
  });
});

describe('a hostile log', () => {
  const LIMIT = ['--limit', 'fixed-window:1/1m'];
  const good = JSON.stringify({ time: START, ip: '203.0.113.7' });

  it('has its unreadable lines counted, and the first ones shown with their numbers', async () => {
    const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
    const lines = [
      good,
      'x'.repeat(200_000),
      '\u0000\u0001\u001B[2Jbinary\u009B\u202E',
      JSON.stringify({ time: START }),
      JSON.stringify({ ip: '203.0.113.7', time: '2026-02-30T00:00:00Z' }),
      JSON.stringify({ ip: { toString: 'no' }, time: START }),
      JSON.stringify({ ip: '203.0.113.7', time: '9999-01-01T00:00:00Z' }),
      `{"time":${START},"ip":${deep}}`,
      'null',
      '[]',
      '',
      good,
    ];
    await logs.write('hostile.ndjson', lines);

    const report = await logs.report(...LIMIT, 'hostile.ndjson');
    const { stdout } = await logs.simulate(...LIMIT, 'hostile.ndjson');

    expect(report).toMatchObject({ requests: 2, allowed: 1, refused: 1, input: { lines: 12 } });
    expect(report.input.skipped.count).toBe(9);
    expect(report.input.skipped.first.map(({ line, reason }) => [line, reason])).toEqual([
      [2, 'is longer than 65536 characters'],
      [3, "is not of the format 'ndjson'"],
      [4, "has no key 'ip'"],
      [5, "has no time from 1970 to 2099 in 'time'"],
      [6, "has no key 'ip'"],
    ]);
    expect(stdout).toContain('9 of 12 lines are left out. The first:\n  line 2 is longer than 65536 characters');
    expect(stdout).toContain("  line 3 is not of the format 'ndjson': \\u0000\\u0001\\u001b[2Jbinary");
    expect(stdout).not.toMatch(/[^\P{C}\n]/u);
  });

  it('moves no cursor by its keys, neither as a table nor as JSON', async () => {
    const key = '\u001B[31m\u009Bred\u202E\uD800';
    await logs.write('colours.ndjson', [
      { time: START, user: key },
      { time: START, user: key },
    ]);
    const args = [...LIMIT, '--key', 'user', 'colours.ndjson'];
    const { stdout: table } = await logs.simulate(...args);
    const { stdout: json } = await logs.simulate('--json', ...args);
    expect(table).toContain('\\u001b[31m\\u009bred\\u202e\\ud800');
    for (const text of [table, json]) expect(text).not.toMatch(/[^\P{C}\n]/u);
    expect(JSON.parse(json)).toMatchObject({ keys: { top: [{ key }] } });
  });

  it('has long keys known by their hashes, and none that another key can be', async () => {
    const long = 'k'.repeat(5000);
    await logs.write('long.ndjson', [
      { time: START, user: long },
      { time: START, user: long },
    ]);
    const [{ key } = { key: '' }] = (await logs.report(...LIMIT, '--key', 'user', 'long.ndjson')).keys.top;
    expect(key).toMatch(/^k{40}….{43}$/);
    await logs.write('shown.ndjson', [
      { time: START, user: long },
      { time: START, user: key },
    ]);
    expect(await logs.report(...LIMIT, '--key', 'user', 'shown.ndjson')).toMatchObject({ allowed: 2, refused: 0 });
  });

  it('is refused as a whole where no line tells its format', async () => {
    await writeFile(logs.path('noise'), Buffer.from(Array.from({ length: 5000 }, (_, index) => (index * 7919) % 256)));
    const { code, stdout, stderr } = await logs.simulate(...LIMIT, 'noise');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/the first lines of the log have no known format .*'--format' to one of ndjson, /);
    expect(stderr).not.toMatch(/[^\P{C}\n]/u);
  });

  it('of more keys than are known at a time says so', async () => {
    const lines = Array.from({ length: 300 }, (_, index) => ({ time: START, user: `user-${index % 150}` }));
    await logs.write('many.ndjson', lines);
    const args = [...LIMIT, '--key', 'user', 'many.ndjson'];
    expect(await logs.report(...args)).toMatchObject({ allowed: 150, refused: 150, keys: { forgotten: 0 } });
    const { allowed, keys } = await logs.report('--max-keys', '100', ...args);
    expect({ allowed, ...keys }).toMatchObject({ allowed: 300, seen: 300, forgotten: 200, forgottenCounting: 200 });
    const { stdout } = await logs.simulate('--max-keys', '100', ...args);
    expect(stdout).toContain('200 keys were forgotten');
  });
});

describe('generated requests', () => {
  const args = ['--limit', 'gcra:60/1s', '--generate', 'poisson:80/s', '--for', '2m'];

  it('are the same for the same seed, and others for another', async () => {
    const [one, again, other] = await Promise.all([
      logs.report(...args),
      logs.report(...args, '--seed', '1'),
      logs.report(...args, '--seed', '2'),
    ]);
    expect(again).toEqual(one);
    expect(other.requests).not.toBe(one.requests);
    // 9600 are expected, with a standard deviation of 98.
    for (const { requests } of [one, other]) expect(Math.abs(requests - 9600)).toBeLessThan(5 * 98);
    // A limit of 60 in a second lets no more than its burst pass besides.
    expect(one.allowed).toBeLessThanOrEqual(60 * 120 + 60);
    expect(one.allowed).toBeGreaterThan(60 * 120 * 0.99);
  });

  it('are of as many keys as are wanted, and come evenly if that is wanted', async () => {
    const report = await logs.report(
      '--limit',
      'fixed-window:1/1h',
      '--generate',
      'constant:2/s',
      '--for',
      '1m',
      '--keys',
      '5',
    );
    expect(report).toMatchObject({ requests: 120, allowed: 5, keys: { seen: 5 } });
    expect(report.retryAfter).toMatchObject({ count: 115 });
    expect([report.from, report.to]).toEqual(['2030-01-01T00:00:00.500Z', '2030-01-01T00:01:00.000Z']);
  });
});

describe('a limit of a policy that counts bytes', () => {
  const sizes = [2500, '-', 999, 9000, 100, 100];
  const at = (index: number) => `[21/Sep/2026:10:00:0${index} +0000]`;

  beforeAll(async () => {
    await logs.write('bytes.yaml', [
      'limits:',
      '  traffic: { algo: fixed-window, rate: 10, interval: 1h, cost: { by: bytes, per: 1kB, estimate: 2 } }',
    ]);
    await logs.write(
      'bytes.log',
      sizes.map((size, index) => `203.0.113.7 - - ${at(index)} "GET /a HTTP/1.1" 200 ${size}`),
    );
  });

  it.each(['body_bytes_sent', 'bytes', 'contentLength'])('charges what the field %s says', async (field) => {
    const lines = sizes.map((size, index) => ({
      time: START + index * 1000,
      ip: '203.0.113.7',
      [field]: size === '-' ? 0 : size,
    }));
    await logs.write('bytes.ndjson', lines);
    const report = await logs.report('--policy', logs.path('bytes.yaml'), 'bytes.ndjson');
    // 3 + 0 + 1 + 9 units: the fourth fits by its estimate, and the next ones no more.
    expect(report).toMatchObject({ allowed: 4, refused: 2 });
    expect(report.limits[0]!.worstStretch).toMatchObject({ units: 13 });
  });

  it('charges the field of server logs', async () => {
    const report = await logs.report('--policy', logs.path('bytes.yaml'), 'bytes.log');
    expect(report).toMatchObject({ allowed: 4, refused: 2, limits: [{ worstStretch: { units: 13 } }] });
  });

  it('refuses a log without such a field', async () => {
    await logs.write('no-bytes.ndjson', [{ time: START, ip: '203.0.113.7' }]);
    const run = await logs.simulate('--policy', logs.path('bytes.yaml'), 'no-bytes.ndjson');
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining('a limit of the policy counts bytes') });
  });
});

/** The elements of a chart with their classes. */
const shapeOf = (svg: string) =>
  [...svg.matchAll(/<(\w+)(?: class="(\w+)")?/g)].map(([, tag, name]) => [tag, name].join('.'));

describe('a chart', () => {
  it('has a bar for each step in which requests were allowed, and one for each in which they were refused', async () => {
    const at = [0, 0, 0, 20, 40, 40].map((ms) => ({ time: START + ms, ip: '203.0.113.7' }));
    await logs.write('chart.ndjson', at);
    const { code } = await logs.simulate(
      '--limit',
      'sliding-log:1/30ms@a<b>&"c"',
      '--svg',
      'chart.svg',
      'chart.ndjson',
    );
    expect(code).toBe(0);
    const svg = await readFile(logs.path('chart.svg'), 'utf8');
    expect(shapeOf(svg)).toEqual(
      [
        ['svg.', 'title.', 'desc.', 'style.', 'rect.', 'text.title'],
        ['rect.allowed', 'text.', 'rect.refused', 'text.', 'text.'],
        Array.from({ length: 5 }, () => ['path.grid', 'text.']).flat(),
        Array.from({ length: 5 }, () => 'text.'),
        ['path.allowed', 'path.refused'],
      ].flat(),
    );
    expect(svg).toContain('<title>2 allowed, 4 refused</title>');
    expect(svg).toContain('>a&lt;b&gt;&amp;&quot;c&quot;</text>');
    const barsOf = (name: string) => new RegExp(`class="${name}" d="([^"]*)"`).exec(svg)![1]!.match(/z/g)?.length;
    // At 0 and at 40 ms; at 0, at 20 and at 40 ms.
    expect([barsOf('allowed'), barsOf('refused')]).toEqual([2, 3]);
  });

  it('is never written over the log', async () => {
    await logs.write('kept.ndjson', [{ time: START, ip: '203.0.113.7' }]);
    const before = await readFile(logs.path('kept.ndjson'), 'utf8');
    for (const path of ['kept.ndjson', './kept.ndjson', logs.path('kept.ndjson')]) {
      const { code, stderr } = await logs.simulate('--limit', 'gcra:1/1s', '--svg', path, 'kept.ndjson');
      expect(code).toBe(2);
      expect(stderr).toContain(`nestjs-sluice simulate: --svg: '${path}' is the log. Use another file`);
    }
    expect(await readFile(logs.path('kept.ndjson'), 'utf8')).toBe(before);
  });
});
