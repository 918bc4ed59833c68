import { describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, RateLimitConfigError } from '../../../lib/index.js';
import { compile, type StoredOptions } from '../../support/limits/stores.js';
import { checkOptions } from '../../support/limits/checked-options.js';

type Algo = StoredOptions['algo'];

/** Of each algorithm, options that are right. */
const right: Record<Algo, Record<string, unknown>> = {
  'fixed-window': { rate: 5, interval: '10s', hold: '1m', onLapse: 'charge' },
  'calendar-window': {
    rate: 5,
    period: 'day',
    timezone: 'UTC',
    anchor: '2026-01-31',
    retain: '7d',
    hold: '1m',
    onLapse: 'charge',
  },
  budget: {
    limit: 5,
    period: 'day',
    timezone: 'UTC',
    anchor: '2026-01-31',
    retain: '7d',
    hold: '1m',
    onLapse: 'charge',
  },
  'sliding-window': { rate: 5, interval: '10s', slices: 10, hold: '1m', onLapse: 'charge' },
  'sliding-log': { rate: 5, interval: '10s', hold: '1m', onLapse: 'charge' },
  'token-bucket': { rate: 5, interval: '10s', burst: 5, refill: 'greedy' },
  'leaky-bucket': { rate: 5, interval: '10s', queue: 5 },
  gcra: { rate: 5, interval: '10s', burst: 5 },
  concurrency: { limit: 5, ttl: '10s' },
};

const ALGOS = Object.keys(right) as Algo[];
const OPTIONAL = ['timezone', 'anchor', 'retain', 'slices', 'burst', 'refill', 'queue', 'hold', 'onLapse'];
const WHOLE = 'a whole number >= 1';
const DURATION =
  "milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year";

/** Values that an option refuses, and what it wants instead. */
const wrongOnes: Record<string, [values: unknown[], wants: string][]> = {
  rate: [[[0, -1, 1.5, NaN, Infinity, '5', null, 2 ** 53], WHOLE]],
  limit: [[[0, 1.5, '5', null], WHOLE]],
  burst: [[[0, 1.5, '5', null], WHOLE]],
  queue: [[[-1, 1.5, '5', null, 2 ** 53 - 1], `a whole number >= 0 and <= ${2 ** 53 - 2}`]],
  slices: [[[0, 1.5, 1001, null], 'a whole number >= 1 and <= 1000']],
  interval: [
    [[0, -1, 0.0004, NaN, Infinity, '', 'soon', '366d', '10 light years', '9'.repeat(101), null, {}, [1000]], DURATION],
  ],
  ttl: [[[0, '366d', null], DURATION]],
  retain: [
    [[0, '366d', null], DURATION],
    [['1y'], 'at most 10000 windows of a second'],
  ],
  hold: [[[0, '366d', null, 'soon'], DURATION]],
  onLapse: [[['keep', null, true], 'one of charge, release']],
  period: [[['fortnight', null], 'one of second, minute, hour, day, week, month, quarter, year']],
  anchor: [
    [
      [
        null,
        '',
        'soon',
        '2026-02-30',
        '2026-01',
        '12:00',
        NaN,
        Infinity,
        new Date(NaN),
        '1899-12-31',
        '2200-01-01',
        {},
        true,
      ],
      "a Date, an ISO 8601 date such as '2026-01-31', milliseconds since the epoch, or a function of the context that returns one of " +
        'these, of the years 1900 to 2199',
    ],
  ],
  timezone: [[['Mars/Olympus', 1, null, ['UTC']], "an IANA time zone such as 'UTC' or 'Europe/Berlin'"]],
  refill: [[['slowly', null], 'one of greedy, intervally']],
};

/** The values of an option that an algorithm refuses. */
const wrong = (algo: Algo, option: string): [values: unknown[], wants: string][] =>
  algo === 'sliding-log' && option === 'rate' ? [[[0, 1.5, 8_388_608], `${WHOLE} and <= 8388607`]] : wrongOnes[option]!;

const options = (algo: Algo, others: Record<string, unknown> = {}) =>
  ({ algo, ...right[algo], ...others }) as unknown as AlgorithmOptions;

const errorOf = (algo: Algo, others: Record<string, unknown>) => {
  try {
    compile(options(algo, others));
  } catch (error) {
    expect(error).toBeInstanceOf(RateLimitConfigError);
    return (error as Error).message;
  }
  return undefined;
};

const eachOption = ALGOS.flatMap((algo) => Object.keys(right[algo]).map((option) => [algo, option] as const));

describe('the options of an algorithm', () => {
  it('are those that its page names', () => {
    const withWarmUp = ['token-bucket', 'gcra'];
    const plans = ['calendar-window', 'budget'];
    for (const algo of ALGOS) {
      const more = withWarmUp.includes(algo) ? ['warmUp'] : plans.includes(algo) ? ['rollover', 'credits'] : [];
      const all = Object.keys(compile(options(algo)).algorithm.options);
      expect(all.toSorted()).toEqual([...Object.keys(right[algo]), ...more].toSorted());
    }
  });

  it.each([
    ['Europe/Berlin', 8.64e15],
    ['America/New_York', -8.64e15],
  ])('refuse an anchor whose local time in %s is beyond all dates', (timezone, anchor) => {
    expect(errorOf('calendar-window', { timezone, anchor })).toContain('test.anchor: expected a Date, ');
  });

  it.each(eachOption)('%s: a wrong %s is refused with its name, its value and what it wants', (algo, option) => {
    for (const [values, wants] of wrong(algo, option)) {
      for (const value of values) {
        const others = wants.endsWith('of a second')
          ? { [option]: value, period: 'second', anchor: undefined }
          : { [option]: value };
        const message = errorOf(algo, others);
        expect(message).toContain(`test.${option}: expected ${wants}, received `);
      }
    }
  });

  it.each(eachOption)('%s: %s is required unless it has a default', (algo, option) => {
    const message = errorOf(algo, { [option]: undefined, ...(option === 'hold' && { onLapse: undefined }) });
    if (OPTIONAL.includes(option)) expect(message).toBeUndefined();
    else expect(message).toBe(`test.${option}: missing, expected ${wrong(algo, option)[0]![1]}`);
  });

  it('are taken up to their bounds', () => {
    for (const interval of [0.0005, 1, '1y']) expect(errorOf('fixed-window', { interval })).toBeUndefined();
    for (const slices of [1, 1000]) expect(errorOf('sliding-window', { slices })).toBeUndefined();
    for (const queue of [0, 1]) expect(errorOf('leaky-bucket', { queue })).toBeUndefined();
    expect(errorOf('sliding-log', { rate: 8_388_607 })).toBeUndefined();
  });

  it.each([
    ['second', 10_000_000],
    ['minute', 600_000_000],
    ['hour', 36_000_000_000],
  ])('retain at most 10,000 windows of a %s', (period, most) => {
    const retaining = (retain: number) => errorOf('calendar-window', { period, retain, anchor: undefined });
    expect(retaining(Math.min(most, 31_557_600_000))).toBeUndefined();
    if (most < 31_557_600_000) {
      expect(retaining(most + 1)).toBe(
        `test.retain: expected at most 10000 windows of a ${period}, received ${most + 1}`,
      );
    }
  });

  it.each(['second', 'minute', 'hour'])('begin no %s at an anchor', (period) => {
    expect(errorOf('calendar-window', { period, retain: undefined })).toBe(
      `test: option 'anchor' does not work with period '${period}'. Use day, week, month, quarter or year`,
    );
  });

  it.each(['calendar-window', 'budget'] as const)('of a plan of %s', (algo) => {
    for (const rollover of [0.000001, 0.5, 1]) expect(errorOf(algo, { rollover })).toBeUndefined();
    for (const rollover of [0, -0.5, 1.1, NaN, '0.5', null, true]) {
      expect(errorOf(algo, { rollover })).toMatch(
        /^test\.rollover: expected a number > 0 and <= 1, such as 0\.5, of at least a millionth, received /,
      );
    }
    expect(errorOf(algo, { credits: true })).toBeUndefined();
    for (const credits of [false, 1, null, 'yes']) {
      expect(errorOf(algo, { credits })).toMatch(/^test.credits: expected true, received /);
    }
    const size = algo === 'budget' ? 'limit' : 'rate';
    expect(errorOf(algo, { [size]: 2 ** 51, credits: true })).toBeUndefined();
    expect(errorOf(algo, { [size]: 2 ** 51 + 1, credits: true })).toBe(
      "test: expected at most 2251799813685248 units for a limit with 'rollover' or 'credits', received 2251799813685249",
    );
    const refused = (more: object) => () =>
      checkOptions(options(algo, { hold: undefined, onLapse: undefined, ...more }));
    if (algo === 'calendar-window') {
      expect(refused({ rollover: 1, prefetch: { units: 10, ttl: '1s' } })).toThrow(
        "options 'prefetch' and 'rollover' exclude each other",
      );
      expect(refused({ rollover: 1, blockFor: '1s' })).toThrow("options 'rollover' and 'blockFor' exclude each other");
    }
    expect(refused({ credits: true, candidate: options(algo) })).toThrow("options 'credits' and 'candidate' exclude");
    expect(refused({ credits: true, share: { by: 'ip' } })).toThrow(`option 'share' is not for '${algo}'`);
  });

  it('of a hold go together', () => {
    const window = { algo: 'fixed-window', rate: 1, interval: '1m' } as const;
    expect(() => compile({ ...window, onLapse: 'release' })).toThrow(
      "test: option 'onLapse' needs 'hold', the time after which held units lapse, such as '5m'",
    );
    const checked = (more: object) => checkOptions({ ...window, hold: '1m', ...more });
    expect(() => checked({ blockFor: '1s' })).toThrow(
      "test: options 'hold' and 'blockFor' exclude each other: expected only one of them",
    );
    expect(() => checked({ prefetch: { units: 10, ttl: '1s' } })).toThrow(
      "test: options 'hold' and 'prefetch' exclude each other: expected only one of them",
    );
    const budget = compile({ algo: 'budget', limit: 1, period: 'day' });
    expect((budget.estimates as unknown as { terms: object }).terms).toEqual({
      duration: 300e6,
      releases: false,
      known: 300e6,
      windows: expect.any(Number),
    });
  });

  it('are refused if no whole numbers below 2^53 count them exactly', () => {
    // A unit weighs 1: so many of them are the most that can be counted.
    const most = 2 ** 52 - 1;
    const light = { rate: 10_000, interval: 10 };
    for (const algo of ['gcra', 'token-bucket'] as const) {
      expect(errorOf(algo, { ...light, burst: most })).toBeUndefined();
      expect(errorOf(algo, { ...light, burst: most + 1 })).toMatch(/cannot be counted exactly/);
    }
    expect(errorOf('leaky-bucket', { ...light, queue: most - 1 })).toBeUndefined();
    expect(errorOf('leaky-bucket', { ...light, queue: most })).toMatch(/cannot be counted exactly/);
    // Milliseconds would do for a month, but not for half of one more.
    expect(errorOf('gcra', { rate: 1, interval: 2_592_000_000, burst: 1_000_000 })).toBeUndefined();
    expect(errorOf('gcra', { rate: 1, interval: 2_592_000_000.5, burst: 1_000_000 })).toMatch(/cannot be counted/);
    expect(errorOf('gcra', { rate: 1, interval: 31_557_600_000, burst: 2 ** 50 })).toMatch(
      /^test: a 'rate' of 1 with an 'interval' of 31557600000 ms and a 'burst' \(or 'queue'\) of 1125899906842624 cannot/,
    );
  });
});

describe('a limit without a name', () => {
  it.each<[Algo, string]>([
    ['fixed-window', 'fixed-window:5/10s'],
    ['calendar-window', 'calendar-window:5/day'],
    ['budget', 'budget:5/day'],
    ['sliding-window', 'sliding-window:5/10s'],
    ['sliding-log', 'sliding-log:5/10s'],
    ['token-bucket', 'token-bucket:5/10s'],
    ['leaky-bucket', 'leaky-bucket:5/10s'],
    ['gcra', 'gcra:5/10s'],
    ['concurrency', 'concurrency:5/10s'],
  ])('%s is named by what it allows', (algo, name) => {
    expect(compile(options(algo)).name).toBe(name);
  });

  it('has a duration in its name as it was written, without spaces', () => {
    expect(compile(options('gcra', { interval: 1500 })).name).toBe('gcra:5/1500ms');
    expect(compile(options('gcra', { interval: '10  s' })).name).toBe('gcra:5/10s');
    expect(compile(options('gcra', { interval: '1 minute' })).name).toBe('gcra:5/1minute');
  });
});

/** The hours of the window of Berlin's day. */
const hoursAt = (time: string) =>
  compile(options('calendar-window', { timezone: 'Europe/Berlin' })).windowMs(Date.parse(time)) / 3_600_000;

describe('the window of a limit', () => {
  it.each(ALGOS.filter((algo) => !('period' in right[algo])))('%s is its interval or its ttl', (algo) => {
    expect(compile(options(algo)).windowMs(0)).toBe(10_000);
  });

  it('is that of the calendar', () => {
    expect(['2026-03-28T22:00:00Z', '2026-03-29T10:00:00Z', '2026-10-25T10:00:00Z'].map(hoursAt)).toEqual([24, 23, 25]);
  });

  it.each(['gcra', 'token-bucket', 'leaky-bucket'] as const)(
    '%s is its interval, too, where it counts in milliseconds',
    (algo) => {
      const size = algo === 'leaky-bucket' ? { queue: 1_000_000 } : { burst: 1_000_000 };
      expect(compile(options(algo, { rate: 1, interval: '30d', ...size })).windowMs(0)).toBe(30 * 86_400_000);
    },
  );
});

describe('what one of several instances may allow', () => {
  const share = (algo: Algo, part: number, others: Record<string, unknown> = {}) =>
    compile(options(algo, others)).partOf(part).options as unknown as Record<string, unknown>;

  it.each<[Algo, Record<string, unknown>]>([
    ['fixed-window', { rate: 25 }],
    ['calendar-window', { rate: 25, period: 'day' }],
    ['sliding-window', { rate: 25 }],
    ['sliding-log', { rate: 25 }],
    ['token-bucket', { rate: 25, burst: 50 }],
    ['leaky-bucket', { rate: 25, queue: 50 }],
    ['gcra', { rate: 25, burst: 50 }],
  ])('%s: a part of the rate, and of what is allowed at once', (algo, expected) => {
    const size = { 'leaky-bucket': { queue: 200 }, 'token-bucket': { burst: 200 }, gcra: { burst: 200 } } as Record<
      string,
      object
    >;
    expect(share(algo, 0.25, { rate: 100, ...size[algo] })).toMatchObject({ algo, ...expected });
    if ('interval' in right[algo]) expect(share(algo, 0.25, { rate: 100 })).toMatchObject({ interval: '10s' });
  });

  it('is a part of what may be held', () => {
    expect(share('concurrency', 0.5)).toMatchObject({ limit: 2, ttl: '10s' });
    expect(share('concurrency', 0.01)).toMatchObject({ limit: 1, ttl: '10s' });
  });

  it('is a part of the rate at once where no burst and no queue are given', () => {
    for (const algo of ['gcra', 'token-bucket'] as const) {
      expect(share(algo, 0.5, { rate: 100, burst: undefined })).toMatchObject({ rate: 50, burst: 50 });
    }
    expect(share('leaky-bucket', 0.5, { rate: 100, queue: undefined })).toMatchObject({ rate: 50, queue: 50 });
    expect(share('leaky-bucket', 0.5, { rate: 100, queue: 0 })).toMatchObject({ rate: 50, queue: 0 });
  });

  it('is one unit in a longer interval where less than one is left of the rate', () => {
    expect(share('gcra', 0.25, { rate: 1 })).toMatchObject({ rate: 1, interval: 40_000, burst: 1 });
    expect(share('fixed-window', 0.1, { rate: 4 })).toMatchObject({ rate: 1, interval: 25_000 });
    expect(share('fixed-window', 0.25, { rate: 4 })).toMatchObject({ rate: 1, interval: 10_000 });
    expect(share('fixed-window', 0.25, { rate: 6 })).toMatchObject({ rate: 1, interval: 10_000 });
    expect(share('fixed-window', 0.5, { rate: 4 })).toMatchObject({ rate: 2, interval: '10s' });
  });

  it('is one unit a year at least', () => {
    expect(share('fixed-window', 0.01, { rate: 1, interval: '30d' })).toMatchObject({
      rate: 1,
      interval: 31_557_600_000,
    });
  });
});
