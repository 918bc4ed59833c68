/** What is asked in each case: times in milliseconds after its start, which limit, and how many units. */

const take = (at, cost = 1, key = 'ann') => ({ at, call: 'take', entries: [{ limit: 'api', key, cost }] });
const peek = (at, cost = 1) => ({ ...take(at, cost), call: 'peek' });
const refundable = (at, cost) => ({ ...take(at, cost), call: 'take-refundable' });
const hold = (at, cost) => ({ ...take(at, cost), call: 'hold' });
/** Gives back the units of an earlier step, or some of them. */
const refund = (at, of, units) => ({ at, call: 'refund', of, ...(units !== undefined && { units }) });
const settle = (at, of, actual) => ({ at, call: 'settle', of, actual });
const penalize = (at, units) => ({ at, call: 'penalize', units });
const block = (at, ms) => ({ at, call: 'block', ms });
const both = (at, costs, [first, second] = ['user', 'team']) => ({
  at,
  call: 'take',
  entries: [
    { limit: first, key: 'ann', cost: costs[0] },
    { limit: second, key: 'blue', cost: costs[1] },
  ],
});

const api = (options, steps, name) => ({ name, limits: { api: options }, steps });

/** Numbers that look random, and are the same each time. */
function drawn(seed, count) {
  let state = seed;
  return Array.from({ length: count }, () => (state = (state * 48_271) % 2_147_483_647));
}

/** A history of takes, looks and refunds at odd times. */
function history(seed, { length = 24, meanMs, mostUnits }) {
  let at = 0;
  const steps = [];
  for (const value of drawn(seed, length)) {
    at = Math.round((at + (value % (2 * meanMs * 1000)) / 1000) * 1000) / 1000;
    const cost = 1 + (value % mostUnits);
    const kind = value % 10;
    if (kind === 0) steps.push(peek(at, cost));
    else if (kind === 1 && steps.some(({ call }) => call === 'take-refundable')) {
      const of = steps.findLastIndex(({ call }) => call === 'take-refundable');
      steps.push(refund(at, of, 1));
    } else if (kind === 2) steps.push(penalize(at, 1 + (value % 3)));
    else steps.push(kind < 6 ? refundable(at, cost) : take(at, cost));
  }
  // Only what was charged can be given back.
  return steps[0].call === 'penalize' ? [take(0), ...steps.filter(({ call }) => call !== 'refund')] : steps;
}

const pace = [
  take(0),
  take(0),
  take(0),
  take(0),
  take(499.999),
  take(500),
  peek(500),
  take(2500, 3),
  take(2500, 9),
  take(60_000),
];

/** Each algorithm with two or three rates. */
const algorithm = (about, ...options) => ({
  about,
  cases: options.flatMap((each, index) => [
    api(each, pace, 'a burst, and one at a time'),
    api(each, history(101 + index, { meanMs: 300, mostUnits: 3 }), 'a busy history'),
    api(each, history(211 + index, { meanMs: 5000, mostUnits: 4 }), 'a calm history'),
  ]),
});

const window = { rate: 4, interval: '2s' };

export const files = {
  'fixed-window': algorithm(
    'fixed-window',
    { algo: 'fixed-window', ...window },
    { algo: 'fixed-window', rate: 7, interval: '1m' },
  ),
  'calendar-window': algorithm(
    'calendar-window',
    { algo: 'calendar-window', rate: 4, period: 'minute' },
    { algo: 'calendar-window', rate: 9, period: 'day', timezone: 'Europe/Berlin' },
  ),
  'sliding-window': algorithm(
    'sliding-window',
    { algo: 'sliding-window', ...window },
    { algo: 'sliding-window', rate: 50, interval: '1m' },
  ),
  'sliding-log': algorithm(
    'sliding-log',
    { algo: 'sliding-log', ...window },
    { algo: 'sliding-log', rate: 9, interval: '10s' },
  ),
  'token-bucket': algorithm(
    'token-bucket',
    { algo: 'token-bucket', ...window },
    { algo: 'token-bucket', rate: 3, interval: '1s', burst: 10 },
    { algo: 'token-bucket', rate: 5, interval: '10s', refill: 'intervally' },
  ),
  gcra: algorithm('gcra', { algo: 'gcra', ...window }, { algo: 'gcra', rate: 7, interval: '3s', burst: 5 }),
  'leaky-bucket': {
    about: 'leaky-bucket',
    cases: [
      api({ algo: 'leaky-bucket', ...window }, pace, 'a burst, and one at a time'),
      api(
        { algo: 'leaky-bucket', rate: 5, interval: '1s', capacity: 8 },
        pace.concat(take(60_001, 4), take(60_500, 6)),
        'a longer queue',
      ),
    ],
  },
  budget: algorithm(
    'budget',
    { algo: 'budget', limit: 30, period: 'day' },
    { algo: 'budget', limit: 12, period: 'hour' },
  ),
  concurrency: {
    about: 'concurrency',
    cases: [
      api(
        { algo: 'concurrency', limit: 3, ttl: '10s' },
        [
          take(0),
          take(1),
          take(2),
          take(3),
          refund(4, 1),
          take(5),
          take(6),
          peek(9000),
          take(10_001),
          take(10_002),
          take(40_000, 3),
        ],
        'slots that are released, and slots that lapse',
      ),
    ],
  },
  adaptive: {
    about: 'adaptive',
    cases: [
      api(
        { algo: 'adaptive', initial: 3, max: 5, scope: 'instance' },
        [take(0), take(1), take(2), take(3), refund(40, 0), take(41), take(42), peek(43)],
        'slots of one process',
      ),
    ],
  },
  blocks: {
    about: 'blocks, with any algorithm',
    cases: [
      api(
        { algo: 'fixed-window', rate: 2, interval: '1s', blockFor: '1m' },
        [take(0), take(1), take(2), take(1500), take(59_000), take(60_002), take(60_003)],
        'blockFor',
      ),
      api(
        { algo: 'gcra', rate: 2, interval: '1s', blockFor: '10s', strike: true },
        [take(0), take(1), take(2), take(9000), take(18_000), take(28_000), take(28_001)],
        'attempts that extend a block',
      ),
      api(
        { algo: 'sliding-log', rate: 1, interval: '1s', blockFor: ['1s', '5s', '1m'], forgetAfter: '10s' },
        [take(0), take(1), take(1500), take(1501), take(7000), take(7001), take(60_000), take(90_000), take(90_001)],
        'longer after each offence',
      ),
      api(
        { algo: 'token-bucket', rate: 5, interval: '1s' },
        [take(0), block(1, 5000), take(2), peek(4000), take(5001), block(5002, 9000), block(5003, 0), take(5004)],
        'by hand',
      ),
    ],
  },
  estimates: {
    about: 'units that are held at an estimate and settled by what was used, charges beyond a limit, and refunds',
    cases: [
      api(
        { algo: 'fixed-window', rate: 100, interval: '1m', hold: '10s' },
        [
          hold(0, 40),
          hold(1, 40),
          hold(2, 40),
          settle(500, 0, 10),
          hold(501, 40),
          settle(600, 1, 70),
          peek(601),
          take(61_000, 20),
        ],
        'fewer and more units than were held',
      ),
      api(
        { algo: 'budget', limit: 100, period: 'day', hold: '10s' },
        [hold(0, 60), peek(5000, 50), take(10_001, 50), settle(10_002, 0, 20), peek(10_003)],
        'units that lapse',
      ),
      api(
        { algo: 'sliding-window', rate: 10, interval: '10s' },
        [refundable(0, 6), penalize(1, 9), take(2), refund(3, 0, 4), take(4), take(12_000, 5)],
        'a debt',
      ),
      api(
        { algo: 'gcra', rate: 10, interval: '10s' },
        [refundable(0, 10), refund(1000, 0, 10), take(1000, 10), penalize(1001, 30), take(1002), take(20_000)],
        'at most one quota beyond',
      ),
    ],
  },
  'all-or-nothing': {
    about: 'checks of several limits, allowed by all or charged to none',
    cases: [
      {
        name: 'a user and a team',
        limits: {
          user: { algo: 'fixed-window', rate: 3, interval: '1m' },
          team: { algo: 'gcra', rate: 2, interval: '1s', burst: 5 },
        },
        steps: [
          both(0, [1, 1]),
          both(1, [1, 5]),
          both(2, [1, 4]),
          both(3, [1, 1]),
          both(1000, [2, 1]),
          both(1001, [1, 1]),
          both(61_000, [3, 5]),
        ],
      },
      {
        name: 'two windows of a key',
        limits: {
          second: { algo: 'sliding-log', rate: 2, interval: '1s' },
          day: { algo: 'calendar-window', rate: 4, period: 'day' },
        },
        steps: [0, 1, 2, 1002, 1003, 2100, 86_400_000].map((at) => both(at, [1, 1], ['second', 'day'])),
      },
    ],
  },
};
