import { beforeAll, describe, expect, it } from '@jest/globals';
import { readLimit } from '../../lib/cli/limit-spec.js';
import { timeOfCommonLog, timeOfNumber, timeOfText } from '../../lib/cli/simulate/formats.js';
import { LogFolder } from './run-program.js';

const logs = new LogFolder();

const LIMIT = ['--limit', 'gcra:1/1s'];
const FORM = 'expected algo:rate/interval[,option=value...][@name], such as gcra:60/1s,burst=120@api';

describe('a limit of the command line', () => {
  it.each([
    ['gcra:60/1s', { name: 'gcra:60/1s', quota: 60 }],
    ['gcra:60/s', { name: 'gcra:60/1s', quota: 60 }],
    ['gcra:60/1s,burst=120@api', { name: 'api', quota: 120 }],
    ['token-bucket:5/10s,burst=20,refill=intervally', { name: 'token-bucket:5/10s', quota: 20 }],
    ['sliding-window:1000/1m,slices=60', { name: 'sliding-window:1000/1m', quota: 1000 }],
    ['sliding-log:5/15m,blockFor=1h', { quota: 5, blockFor: 3_600_000_000, escalation: undefined }],
    [
      'sliding-log:5/15m,blockFor=1m/1h',
      { blockFor: 60_000_000, escalation: { steps: [60_000_000, 3_600_000_000], forgetAfter: 3_600_000_000 } },
    ],
    [
      'gcra:5/15m,blockFor=1m/1m,forgetAfter=1d',
      { escalation: { steps: [60_000_000, 60_000_000], forgetAfter: 86_400_000_000 } },
    ],
    ['leaky-bucket:10/1s,queue=0', { quota: 1 }],
    ['calendar-window:100/month,rollover=0.5,credits=true', { quota: 100, planOption: 'credits' }],
    ['calendar-window:100/month,rollover=0.5', { quota: 100, planOption: 'rollover' }],
    ['fixed-window:100/1h,hold=5m,onLapse=release', { quota: 100 }],
    ['calendar-window:1000/day,timezone=Europe/Berlin', { name: 'calendar-window:1000/day', quota: 1000 }],
    ['fixed-window:3/250ms,mode=shadow@a, b@c', { name: 'a, b@c', shadow: true }],
  ])('%s is read', (spec, expected) => {
    const { limit } = readLimit(spec);
    expect(limit).toMatchObject(expected);
  });

  it('may have a key of its own', () => {
    expect(readLimit('gcra:1/s,blockFor=1h,strike=true').limit).toMatchObject({ strikes: true });
    expect(() => readLimit('gcra:1/s,blockFor=1h,strike=yes')).toThrow(
      "strike: expected true or false, received 'yes'",
    );
    expect(['gcra:1/s,key={a}:{b}', 'gcra:2/s'].map((spec) => readLimit(spec).key)).toEqual(['{a}:{b}', undefined]);
  });

  it.each([
    ['gcra', FORM],
    ['gcra:60', FORM],
    ['', FORM],
    ['gcra:60/1s,burst', FORM],
    ['gcra:60/1s,=2', FORM],
    ['gcra:60/1s,', FORM],
    ['gcra:x/1s', "rate: expected a whole number >= 1, received 'x'"],
    ['gcra:/1s', "rate: expected a whole number >= 1, received ''"],
    ['gcra:0/1s', 'rate: expected a whole number >= 1, received 0'],
    ['gcra:-1/1s', "rate: expected a whole number >= 1, received '-1'"],
    ['gcra:1.5/1s', "rate: expected a whole number >= 1, received '1.5'"],
    ['gcra:1e3/1s', "rate: expected a whole number >= 1, received '1e3'"],
    ['gcra:1/0s', /interval: expected milliseconds or a duration.+, received '0s'/],
    ['gcra:1/', /interval: expected milliseconds or a duration.+, received ''/],
    ['gcra:1/soon', /interval: expected milliseconds or a duration.+, received 'soon'/],
    ['gcra:1/2y', /interval: expected milliseconds or a duration.+, received '2y'/],
    ['gcra:1/1s,burst=-2', "burst: expected a whole number >= 1, received '-2'"],
    ['gcra:1/1s,queue=2', "unknown option 'queue', expected one of burst, key, mode, blockFor, strike, forgetAfter"],
    [
      'gcra:1/1s,share=tenant',
      "--limit 'gcra:1/1s,share=tenant'.share: shares cannot be written as a single value. Write the limit without it: the total is the same, but the part of each tenant is not simulated",
    ],
    ['gcra:1/1s,rate=2', "unknown option 'rate', expected one of burst, key, mode, blockFor, strike, forgetAfter"],
    [
      'gcra:1/1s,__proto__=2',
      "unknown option '__proto__', expected one of burst, key, mode, blockFor, strike, forgetAfter",
    ],
    ['gcra:1/1s,burst=1,burst=2', "--limit 'gcra:1/1s,burst=1,burst=2'.burst: the option is given twice. Give it once"],
    [
      'gcra:1/1s,blockFor=never',
      /blockFor: expected a duration of more than 0 and at most 1 year, or 1 to 100 durations.+, received 'never'/,
    ],
    ['gcra:1/1s,blockFor=1m/', /blockFor\[1\]: expected milliseconds or a duration.+, received ''/],
    [
      'gcra:1/1s,blockFor=1h/1m',
      /blockFor: expected a duration of more than 0 and at most 1 year, or 1 to 100 durations.+, received \[ '1h', '1m' \]/,
    ],
    [
      'gcra:1/1s,forgetAfter=1m',
      "forgetAfter: expected nothing, unless 'blockFor' is a list of durations, received '1m'",
    ],
    ['gcra:1/1s,mode=off', "mode: expected one of enforce, shadow, received 'off'"],
    ['gcra:1/1s@', "name: expected 1 to 128 printable ASCII characters, received ''"],
    ['gcra:1/1s@ä', "name: expected 1 to 128 printable ASCII characters, received 'ä'"],
    [
      'calendar-window:1/1d',
      "period: expected one of second, minute, hour, day, week, month, quarter, year, received '1d'",
    ],
    [
      'calendar-window:1/day,rollover=1.5',
      'rollover: expected a number > 0 and <= 1, such as 0.5, of at least a millionth, received 1.5',
    ],
    ['calendar-window:1/day,credits=yes', "credits: expected true, received 'yes'"],
    [
      'calendar-window:1/day,timezone=Moon',
      "timezone: expected an IANA time zone such as 'UTC' or 'Europe/Berlin', received 'Moon'",
    ],
    ['token-bucket:1/1s,refill=x', "refill: expected one of greedy, intervally, received 'x'"],
    ['nope:1/1s,burst=2', /algo: expected one of fixed-window, calendar-window.+, received 'nope'/],
    ['concurrency:3/1m', "'concurrency' cannot be simulated, since no log shows when its units are released"],
    [
      'gcra:99999999999999/1y',
      "--limit 'gcra:99999999999999/1y': a 'rate' of 99999999999999 with an 'interval' of 31557600000 ms and a 'burst' (or 'queue') of 99999999999999 cannot be counted exactly in whole numbers below 2^53. Use a rounder or smaller 'rate', a shorter 'interval' or a smaller 'burst'",
    ],
  ])('%s is refused', (spec, message) => {
    expect(() => readLimit(spec)).toThrow(message);
    expect(() => readLimit(spec)).toThrow(`--limit '${spec}'`);
  });
});

describe('a command line', () => {
  beforeAll(() => logs.write('access.ndjson', [{ time: 1_790_000_000, user: 'eva' }]));

  it.each([
    [[], "log: missing, expected a file, '-' for standard input, or '--generate'", LIMIT],
    [['access.ndjson'], '--limit: missing, expected at least one, such as --limit gcra:60/1s', []],
    [['access.ndjson'], `--limit 'gcra': ${FORM}`, ['--limit', 'gcra']],
    [
      ['access.ndjson'],
      "--limit: two limits have the name 'gcra:1/1s'. Name each: algo:rate/interval@name",
      [...LIMIT, ...LIMIT],
    ],
    [['access.ndjson', 'b'], "log: expected one input, received 'access.ndjson' and 'b'", LIMIT],
    [['access.ndjson'], "unknown option '--bogus'", [...LIMIT, '--bogus']],
    [['access.ndjson'], '--key: the option is given twice. Give it once', [...LIMIT, '--key', 'a', '--key', 'b']],
    [['access.ndjson'], '--json: the option is given twice. Give it once', [...LIMIT, '--json', '--json']],
    [
      ['access.ndjson'],
      "--key: expected a field, or a template with fields in braces such as {tenant}:{user}, received '{user'",
      [...LIMIT, '--key', '{user'],
    ],
    [
      ['access.ndjson'],
      "--key: expected a field, or a template with fields in braces such as {tenant}:{user}, received ''",
      [...LIMIT, '--key', ''],
    ],
    [
      ['access.ndjson'],
      "--format: expected one of ndjson, combined, common, nginx, apache, received 'csv'",
      [...LIMIT, '--format', 'csv'],
    ],
    [['access.ndjson'], "--format: unknown value 'ngnix'. Did you mean 'nginx'?", [...LIMIT, '--format', 'ngnix']],
    [['access.ndjson'], "unknown option '--fromat'. Did you mean '--format'?", [...LIMIT, '--fromat', 'common']],
    [['access.ndjson'], "unknown option 'brust'. Did you mean 'burst'?", ['--limit', 'gcra:1/1s,brust=2']],
    [
      ['access.ndjson'],
      "--reorder: expected a duration such as '10s', '1m', '1h' (units: ms, s, m, h, d, w, y), at most 1 year, received 'x'",
      [...LIMIT, '--reorder', 'x'],
    ],
    [
      ['access.ndjson'],
      "--max-keys: expected a whole number >= 1 and <= 10000000, received '0'",
      [...LIMIT, '--max-keys', '0'],
    ],
    [['access.ndjson'], "--seed: the option is only for '--generate'", [...LIMIT, '--seed', '2']],
    [['access.ndjson'], "'none/a.svg' cannot be written: ENOENT", [...LIMIT, '--svg', 'none/a.svg']],
    [
      ['access.ndjson'],
      "--key: missing, expected a field: the first lines have none of ip, remote_addr, remoteAddress, remote_ip, client_ip, clientIp, clientip, req.remoteAddress, req.ip, request.client_ip, request.remote_ip, only 'time', 'user'",
      LIMIT,
    ],
    [
      ['access.ndjson'],
      "--key: missing, expected a field: the first lines have none of ip, remote_addr, remoteAddress, remote_ip, client_ip, clientIp, clientip, req.remoteAddress, req.ip, request.client_ip, request.remote_ip, only 'time', 'user'",
      LIMIT,
    ],
    [
      ['access.ndjson'],
      "log: expected one input, received 'access.ndjson' and '--generate poisson:1/s'",
      [...LIMIT, '--generate', 'poisson:1/s'],
    ],
    [[], /--generate: expected 'poisson:' or.+, received 'poisson:0\/s'/, [...LIMIT, '--generate', 'poisson:0/s']],
    [[], /--generate: expected 'poisson:' or.+, received 'gauss:1\/s'/, [...LIMIT, '--generate', 'gauss:1/s']],
    [[], 'expected at most 1000000000 requests', [...LIMIT, '--generate', 'poisson:1000000/ms', '--for', '1d']],
    [[], '--cost: the option is only for a log', [...LIMIT, '--generate', 'poisson:1/s', '--cost', 'units']],
  ])('with %j is wrong: %s', async (inputs, message, options) => {
    const { code, stdout, stderr } = await logs.simulate(...options, ...inputs);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`nestjs-sluice simulate: `);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/\nsee nestjs-sluice simulate --help\n$/);
  });

  it.each([
    ['none.ndjson', "'none.ndjson' cannot be read: ENOENT"],
    ['.', "'.' cannot be read: EISDIR"],
    ['-', 'the log is empty'],
  ])('that names the log %s exits with 1', async (path, message) => {
    const { code, stdout, stderr } = await logs.simulate(...LIMIT, path);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
  });

  it('that names a field which no line has exits with 1, and shows the first line', async () => {
    const { code, stderr } = await logs.simulate(...LIMIT, '--key', 'tenant', 'access.ndjson');
    expect(code).toBe(1);
    expect(stderr).toContain("no line of the log could be read: line 1 has no key 'tenant': '{\"time\":1790000000");
  });
});

describe('times', () => {
  const TIME = Date.UTC(2026, 8, 21, 10, 20, 30);

  it.each([
    ['2026-09-21T10:20:30Z', 0],
    ['2026-09-21T10:20:30.123Z', 123_000],
    ['2026-09-21T10:20:30.456Z', 456_000],
    ['2026-09-21T10:20:30.123456Z', 123_456],
    ['2026-09-21T10:20:30.123456789Z', 123_456],
    ['2026-09-21 10:20:30,5', 500_000],
    ['2026-09-21T12:20:30+02:00', 0],
    ['2026-09-21T04:50:30-0530', 0],
    ['2026-09-21T12:20:30+02', 0],
    ['1789986030', 0],
    ['1789986030.25', 250_000],
    ['1789986030123', 123_000],
    ['1789986030123456', 123_456],
  ])('%s is read', (text, micros) => {
    expect(timeOfText(text)).toBe(TIME * 1000 + micros);
  });

  it.each([
    '',
    'yesterday',
    '2026-09-21',
    '2026-13-01T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-09-21T24:00:00Z',
    '2026-09-21T10:60:00Z',
    '2026-09-21T10:20:61Z',
    '2026-09-21T10:20:30+99:00',
    '2026-09-21T10:20:30.12xZ',
    '2026-09-21T10:20:30.1234567890Z',
    '1969-12-31T23:59:59Z',
    '2100-01-01T00:00:00Z',
    '99999999999999999999',
    '-5',
  ])('%j is none', (text) => {
    expect(timeOfText(text)).toBeUndefined();
  });

  it('are the same after another time was read', () => {
    for (const second of ['30', '31', '30']) {
      expect(timeOfText(`2026-09-21T10:20:${second}.001Z`)).toBe((TIME + (Number(second) - 30) * 1000 + 1) * 1000);
      expect(timeOfText(`2026-09-21T10:20:${second}.00xZ`)).toBeUndefined();
    }
  });

  it.each([NaN, Infinity, -1, 1e20])('%d is none', (number) => {
    expect(timeOfNumber(number)).toBeUndefined();
  });

  it.each([
    ['21/Sep/2026:10:20:30 +0000', TIME],
    ['21/Sep/2026:12:20:30 +0200', TIME],
    ['20/Sep/2026:22:20:30 -1200', TIME],
    ['21/Xyz/2026:10:20:30 +0000', undefined],
    ['31/Sep/2026:10:20:30 +0000', undefined],
    ['21/Sep/2026:25:20:30 +0000', undefined],
  ])('%s of a web server is read if it is one', (text, expected) => {
    expect(timeOfCommonLog(text)).toBe(expected === undefined ? undefined : expected * 1000);
  });
});
