import { beforeAll, describe, expect, it } from '@jest/globals';
import { readLimit, readLimits } from '../../lib/cli/limit-spec.js';
import { timeOfCommonLog, timeOfNumber, timeOfText } from '../../lib/cli/simulate/times.js';
import { LogFolder } from './run-program.js';

const logs = new LogFolder();

const LIMIT = ['--limit', 'gcra:1/1s'];
const FORM = 'it wants algo:rate/interval[,option=value...][@name], such as gcra:60/1s,burst=120@api';

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
    expect(() => readLimit('gcra:1/s,blockFor=1h,strike=yes')).toThrow("option 'strike' is 'yes', wants true or false");
    expect(readLimits(['gcra:1/s,key={a}:{b}', 'gcra:2/s']).map(({ key }) => key)).toEqual(['{a}:{b}', undefined]);
  });

  it.each([
    ['gcra', FORM],
    ['gcra:60', FORM],
    ['', FORM],
    ['gcra:60/1s,burst', FORM],
    ['gcra:60/1s,=2', FORM],
    ['gcra:60/1s,', FORM],
    ['gcra:x/1s', "option 'rate' is 'x', wants a whole number >= 1"],
    ['gcra:/1s', "option 'rate' is '', wants a whole number >= 1"],
    ['gcra:0/1s', "option 'rate' is 0, wants a whole number >= 1"],
    ['gcra:-1/1s', "option 'rate' is '-1', wants a whole number >= 1"],
    ['gcra:1.5/1s', "option 'rate' is '1.5', wants a whole number >= 1"],
    ['gcra:1e3/1s', "option 'rate' is '1e3', wants a whole number >= 1"],
    ['gcra:1/0s', "option 'interval' is '0s', wants milliseconds or a duration"],
    ['gcra:1/', "option 'interval' is '', wants milliseconds or a duration"],
    ['gcra:1/soon', "option 'interval' is 'soon', wants milliseconds or a duration"],
    ['gcra:1/2y', "option 'interval' is '2y', wants milliseconds or a duration"],
    ['gcra:1/1s,burst=-2', "option 'burst' is '-2', wants a whole number >= 1"],
    ['gcra:1/1s,queue=2', "option 'queue' is unknown, wants only burst, key, mode, blockFor, strike, forgetAfter"],
    ['gcra:1/1s,share=tenant', "option 'share' is not a single value, wants the limit without it"],
    ['gcra:1/1s,rate=2', "option 'rate' is unknown, wants only burst, key, mode, blockFor, strike, forgetAfter"],
    [
      'gcra:1/1s,__proto__=2',
      "option '__proto__' is unknown, wants only burst, key, mode, blockFor, strike, forgetAfter",
    ],
    ['gcra:1/1s,burst=1,burst=2', "option 'burst' is given twice, wants it once"],
    [
      'gcra:1/1s,blockFor=never',
      "option 'blockFor' is 'never', wants a duration of more than 0 and at most 1 year, or 1 to 100 durations",
    ],
    ['gcra:1/1s,blockFor=1m/', "option 'blockFor[1]' is '', wants milliseconds or a duration"],
    [
      'gcra:1/1s,blockFor=1h/1m',
      "option 'blockFor' is [ '1h', '1m' ], wants a duration of more than 0 and at most 1 year, or 1 to 100 durations",
    ],
    ['gcra:1/1s,forgetAfter=1m', "option 'forgetAfter' is '1m', wants nothing, unless 'blockFor' is a list"],
    ['gcra:1/1s,mode=off', "option 'mode' is 'off', wants one of enforce, shadow"],
    ['gcra:1/1s@', "option 'name' is '', wants 1 to 128 printable ASCII characters"],
    ['gcra:1/1s@ä', "option 'name' is 'ä', wants 1 to 128 printable ASCII characters"],
    ['calendar-window:1/1d', "option 'period' is '1d', wants one of second, minute, hour, day"],
    ['calendar-window:1/day,rollover=1.5', "option 'rollover' is 1.5, wants a number > 0 and <= 1, such as 0.5"],
    ['calendar-window:1/day,credits=yes', "option 'credits' is 'yes', wants true"],
    ['calendar-window:1/day,timezone=Moon', "option 'timezone' is 'Moon', wants an IANA time zone"],
    ['token-bucket:1/1s,refill=x', "option 'refill' is 'x', wants one of greedy, intervally"],
    ['nope:1/1s,burst=2', "option 'algo' is 'nope', wants one of fixed-window, calendar-window"],
    ['concurrency:3/1m', "'concurrency' cannot be simulated, since no log shows when its units are released"],
    ['gcra:99999999999999/1y', 'which cannot be counted exactly in whole numbers below 2^53'],
  ])('%s is refused', (spec, message) => {
    expect(() => readLimit(spec)).toThrow(message);
    expect(() => readLimit(spec)).toThrow(`--limit '${spec}': `);
  });
});

describe('a command line', () => {
  beforeAll(() => logs.write('access.ndjson', [{ time: 1_790_000_000, user: 'eva' }]));

  it.each([
    [[], "no log is given, wants a file, '-' for the standard input, or '--generate'", LIMIT],
    [['access.ndjson'], "option '--limit' is missing, wants at least one, such as --limit gcra:60/1s", []],
    [['access.ndjson'], `--limit 'gcra': ${FORM}`, ['--limit', 'gcra']],
    [['access.ndjson'], "option '--limit' has the name 'gcra:1/1s' twice", [...LIMIT, ...LIMIT]],
    [['access.ndjson', 'b'], "got the inputs 'access.ndjson' and 'b', wants one of them", LIMIT],
    [['access.ndjson'], "option '--bogus' is unknown, wants only --limit, --policy, --path", [...LIMIT, '--bogus']],
    [['access.ndjson'], "option '--key' is given twice, wants it once", [...LIMIT, '--key', 'a', '--key', 'b']],
    [['access.ndjson'], "option '--json' is given twice, wants it once", [...LIMIT, '--json', '--json']],
    [['access.ndjson'], "option '--key' is '{user', wants a field, or a template", [...LIMIT, '--key', '{user']],
    [['access.ndjson'], "option '--key' is '', wants a field, or a template", [...LIMIT, '--key', '']],
    [['access.ndjson'], "option '--format' is 'csv', wants one of ndjson, combined", [...LIMIT, '--format', 'csv']],
    [['access.ndjson'], "'ngnix' (did you mean 'nginx'?), wants one of", [...LIMIT, '--format', 'ngnix']],
    [['access.ndjson'], "'--fromat' is unknown (did you mean '--format'?)", [...LIMIT, '--fromat', 'common']],
    [['access.ndjson'], "option 'brust' is unknown (did you mean 'burst'?)", ['--limit', 'gcra:1/1s,brust=2']],
    [['access.ndjson'], "option '--reorder' is 'x', wants a duration", [...LIMIT, '--reorder', 'x']],
    [['access.ndjson'], "option '--max-keys' is '0', wants a whole number >= 1", [...LIMIT, '--max-keys', '0']],
    [['access.ndjson'], "option '--seed' is only for '--generate'", [...LIMIT, '--seed', '2']],
    [['access.ndjson'], "'none/a.svg' cannot be written: ENOENT", [...LIMIT, '--svg', 'none/a.svg']],
    [['access.ndjson'], "option '--key' is missing, and the first lines have none of ip, remote_addr", LIMIT],
    [['access.ndjson'], "wants a field: they have 'time', 'user'", LIMIT],
    [['access.ndjson'], "and '--generate poisson:1/s', wants one of them", [...LIMIT, '--generate', 'poisson:1/s']],
    [[], "option '--generate' is 'poisson:0/s', wants 'poisson:' or", [...LIMIT, '--generate', 'poisson:0/s']],
    [[], "option '--generate' is 'gauss:1/s', wants 'poisson:' or", [...LIMIT, '--generate', 'gauss:1/s']],
    [[], 'wants at most 1000000000 requests', [...LIMIT, '--generate', 'poisson:1000000/ms', '--for', '1d']],
    [[], "option '--cost' is only for a log", [...LIMIT, '--generate', 'poisson:1/s', '--cost', 'units']],
  ])('with %j is wrong: %s', async (inputs, message, options) => {
    const { code, stdout, stderr } = await logs.simulate(...options, ...inputs);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`nestjs-sluice simulate: `);
    expect(stderr).toContain(message);
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
