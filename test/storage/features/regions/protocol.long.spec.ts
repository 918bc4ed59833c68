import { describe, expect, it } from '@jest/globals';
import { type Bounds, Explorer, type Found } from './explorer.js';
import { type Guard, GUARDS, type Terms } from './protocol-model.js';

/** How long a unit may be held is a part of the interval; a region is never silent for so long that the home forgets it. */
const TERMS: Terms = { kind: 'log', quota: 1, interval: 2, lifetime: 1, silent: 1000 };
const BOUNDS: Bounds = { regions: 1, ticks: 0, asks: 1, depositsAtOnce: true };

const explored = new Map<string, Found>();

/** Explores what has not been explored before. */
function explore(terms: Partial<Terms>, bounds: Partial<Bounds>, recovers = false): Found {
  const key = JSON.stringify([terms, bounds, recovers]);
  const found = explored.get(key) ?? new Explorer({ ...TERMS, ...terms }, { ...BOUNDS, ...bounds }, recovers).explore();
  explored.set(key, found);
  return found;
}

type Case = readonly [name: string, terms: Partial<Terms>, bounds: Partial<Bounds>];

/** No more is used than the limit says, and every unit is somewhere, in each state within these bounds. */
const SAFE: readonly Case[] = [
  ['two regions, and messages that arrive twice', { quota: 2 }, { regions: 2, ticks: 1, asks: 1, repeats: 1 }],
  ['two regions that exchange again', {}, { regions: 2, ticks: 2, asks: 2 }],
  ['two regions and a larger quota', { quota: 3 }, { regions: 2, asks: 2 }],
  ['a quota of four', { quota: 4 }, { ticks: 2, asks: 2, repeats: 1 }],
  ['three regions', { quota: 2 }, { regions: 3, asks: 1 }],
  ['three regions, and time that passes', {}, { regions: 3, ticks: 1, asks: 1 }],
  ['windows of a calendar', { kind: 'calendar', quota: 2 }, { regions: 2, ticks: 3 }],
  ['units that are given back', { quota: 2 }, { regions: 2, ticks: 1, asks: 1, refunds: 1 }],
  ['units that are given back in a window', { kind: 'calendar' }, { regions: 2, ticks: 2, asks: 1, refunds: 1 }],
  ['replies that are noted, and deposited later', {}, { regions: 2, ticks: 1, homeFailures: 1, depositsAtOnce: false }],
  ['a home that fails', {}, { regions: 2, ticks: 1, homeFailures: 1 }],
  ['a home that fails while regions say hello', {}, { asks: 2, hellos: 2, homeFailures: 1 }],
  ['a home that fails twice', {}, { asks: 2, hellos: 1, homeFailures: 2 }],
  [
    'a home that fails soon after a restart',
    {},
    { asks: 3, hellos: 2, homeFailures: 1, isRestarted: true, keepsSome: true },
  ],
  ['three regions, and a home that fails', {}, { regions: 3, homeFailures: 1, keepsSome: true }],
  ['a home that fails in a window of a calendar', { kind: 'calendar' }, { regions: 2, ticks: 1, homeFailures: 1 }],
  [
    'a home that fails while a window of a calendar passes',
    { kind: 'calendar' },
    { regions: 2, ticks: 1, asks: 1, hellos: 1, homeFailures: 1 },
  ],
  ['a region that fails', {}, { ticks: 1, asks: 2, repeats: 1, regionFailures: 1 }],
  ['a region that fails twice', {}, { ticks: 1, asks: 2, regionFailures: 2 }],
  ['a region and a home that fail', {}, { regions: 1, ticks: 1, asks: 2, homeFailures: 1, regionFailures: 1 }],
  ['a home on the server of a region', {}, { asks: 2, hellos: 1, homeFailures: 1, isShared: true }],
  ['a home whose clock is set back', { interval: 1 }, { regions: 2, ticks: 2, hellos: 1, setBack: 2 }],
  ['a reset', { quota: 2 }, { regions: 1, ticks: 1, asks: 4, isReset: true }],
  ['a reset, and units that are given back', { quota: 2 }, { ticks: 2, asks: 3, refunds: 1, isReset: true }],
  ['a reset in a window of a calendar', { kind: 'calendar', quota: 2 }, { ticks: 1, asks: 4, isReset: true }],
  ['a reset that a region hears of', { quota: 2 }, { ticks: 1, asks: 4, isReset: true, hearsReset: true }],
  ['a reset that two regions hear of', {}, { regions: 2, ticks: 1, asks: 2, isReset: true, hearsReset: true }],
  [
    'a reset that a region hears of, and units that are given back',
    { quota: 2 },
    { ticks: 2, asks: 3, refunds: 1, isReset: true, hearsReset: true },
  ],
  [
    'a reset that a region hears of in a window of a calendar',
    { kind: 'calendar', quota: 2 },
    { ticks: 1, asks: 4, isReset: true, hearsReset: true },
  ],
  ['regions that are new', {}, { asks: 2, hellos: 1, homeFailures: 1, isNew: true }],
];

/** From each state within these bounds everything comes back. */
const RECOVERING: readonly Case[] = [
  ['messages that arrive twice', {}, { regions: 2, ticks: 2, repeats: 1 }],
  ['windows of a calendar', { kind: 'calendar', quota: 2 }, { regions: 2, ticks: 2 }],
  ['a home that fails', {}, { regions: 2, ticks: 1, homeFailures: 1 }],
  ['a region that fails', {}, { ticks: 2, regionFailures: 1, repeats: 1 }],
  ['a clock that is set back', {}, { ticks: 3, asks: 2, refunds: 1, setBack: 3 }],
  ['a reset', { quota: 2 }, { ticks: 2, asks: 3, refunds: 1, isReset: true }],
  ['a reset that two regions hear of', {}, { regions: 2, ticks: 1, asks: 2, isReset: true, hearsReset: true }],
  [
    'a reset that two regions hear of in a window of a calendar',
    { kind: 'calendar', interval: 3, lifetime: 2 },
    { regions: 2, ticks: 0, asks: 2, isReset: true, hearsReset: true },
  ],
];

/** Where it goes wrong without one of the rules, and not with all of them. */
const NEEDED: Readonly<Record<Guard, readonly [terms: Partial<Terms>, bounds: Partial<Bounds>]>> = {
  'the number of an exchange': [{}, { asks: 4, repeats: 1 }],
  'the history of an exchange': [{}, { asks: 2, regionFailures: 1 }],
  'the open exchange': [{}, { repeats: 1 }],
  'the history of a region': [{}, { regionFailures: 1 }],
  'the regions to be heard': [{}, { regions: 2, homeFailures: 1 }],
  'the number of calls': [{}, { asks: 2, hellos: 1, homeFailures: 1 }],
  'no count before': [{}, { asks: 2, hellos: 2, homeFailures: 1 }],
  'forgetful regions': [
    {},
    { asks: 2, hellos: 1, homeFailures: 1, isShared: true, keepsSome: true, endsInstances: true },
  ],
  'a known home': [{}, { asks: 2, hellos: 1, homeFailures: 1, isNew: true, keepsSome: true, others: 1 }],
  'the memory of instances': [{}, { asks: 2, hellos: 1, homeFailures: 1, isShared: true }],
  'the newest home': [{}, { asks: 2, hellos: 2, homeFailures: 1 }],
  'one home of a number': [{}, { asks: 3, hellos: 2, homeFailures: 1, isRestarted: true, keepsSome: true }],
  'the end of the window': [
    { kind: 'calendar', interval: 3, lifetime: 2 },
    { ticks: 3, asks: 2 },
  ],
  'the lifetime': [{}, { regions: 2, ticks: 3 }],
  'stricter parameters': [
    { interval: 3, lifetime: 2 },
    { ticks: 4, asks: 2 },
  ],
  'returns of a record': [{ quota: 2 }, { ticks: 1, asks: 4, isReset: true }],
  'the end of grants': [
    { interval: 3, lifetime: 2 },
    { asks: 1, isReset: true, hearsReset: true },
  ],
  'no grants of the future': [{ interval: 1 }, { regions: 2, ticks: 2, hellos: 1, setBack: 2 }],
};

describe('the protocol of limits over several regions, in every state within bounds', () => {
  it.each(SAFE)('never lets more through, and loses no unit: %s', (_, terms, bounds) => {
    const { problem, steps, states } = explore(terms, bounds);
    expect({ problem, steps }).toEqual({ problem: undefined, steps: [] });
    expect(states).toBeGreaterThan(100);
  });

  it.each(RECOVERING)('gets everything back that was not used, once nothing fails any more: %s', (_, terms, bounds) => {
    const { problem, steps } = explore(terms, bounds, true);
    expect({ problem, steps }).toEqual({ problem: undefined, steps: [] });
  });
});

describe('what the protocol does is needed', () => {
  it.each(GUARDS)('%s: more is let through without it', (without) => {
    const [terms, bounds] = NEEDED[without];
    expect(explore({ ...terms, without }, bounds).problem).toMatch(
      /units used (within an interval|in a window)$|granted before the reset$/,
    );
    expect(explore(terms, bounds).problem).toBeUndefined();
  });

  it('units are given up for known reasons only', () => {
    const { reasons } = explore({}, { ticks: 1, asks: 2, homeFailures: 1, regionFailures: 1 });
    expect([...reasons].toSorted()).toMatchInlineSnapshot(`
[
  "granted in an exchange that is over",
  "granted to a server that was replaced",
  "held by a server that was replaced",
  "not taken back by the home",
  "sent back by a server that was replaced",
]
`);
  });
});
