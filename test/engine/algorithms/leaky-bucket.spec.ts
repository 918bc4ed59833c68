import { describe, expect, it } from '@jest/globals';
import { leakyBucket, type LeakyBucketState } from '../../../lib/engine/algorithms/leaky-bucket.js';

/** A unit leaves every two seconds, which are as many ticks as microseconds. */
const parameters = leakyBucket.compile({ algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 9 }, 'test');
const T = 2_000_000;
const START = 1_000_000_000;

/** When the unit of a number leaves that was taken at `START`: the first one at once. */
const slot = (number: number) => START + number * T;

const open = (stored: LeakyBucketState | undefined, now: number) => leakyBucket.open(parameters, stored, now);

function take(state: LeakyBucketState, cost: number): number {
  const ticket = leakyBucket.queue!.ticket(parameters, state, cost);
  leakyBucket.take(parameters, state, cost);
  return ticket;
}

/** Takes units at `START`, request by request. */
function queueOf(...costs: number[]): LeakyBucketState {
  const state = open(undefined, START);
  for (const cost of costs) take(state, cost);
  return leakyBucket.save(parameters, state);
}

function give(state: LeakyBucketState, units: number, ticket?: number, chargedAt?: number): void {
  leakyBucket.give(parameters, state, units, ticket, chargedAt);
}

const remaining = (state: LeakyBucketState) => leakyBucket.remaining(parameters, state);
/** When the last unit leaves. */
const endOf = (state: LeakyBucketState) => leakyBucket.queue!.ticket(parameters, state, 0);

describe('a queue that shapes', () => {
  it('gives each unit a slot of its own', () => {
    const state = open(undefined, START);
    expect([take(state, 1), take(state, 2), take(state, 1)]).toEqual([slot(0), slot(2), slot(3)]);
    expect([remaining(state), endOf(state)]).toEqual([6, slot(3)]);
    expect(leakyBucket.queue!.delay(parameters, state, 2)).toBe(5 * T);
  });

  it('tells the ticket of a request without its last units', () => {
    expect(leakyBucket.queue!.ticketBefore(parameters, slot(4), 3)).toBe(slot(1));
    const thirds = leakyBucket.compile({ algo: 'leaky-bucket', rate: 3, interval: 0.01 }, 'test');
    expect(leakyBucket.queue!.ticketBefore(thirds, START + 7, 1)).toBe(START + 4);
  });

  it('holds requests from the time of its own while the clock catches up', () => {
    const state = open(queueOf(2), START - 1_000_000);
    expect(leakyBucket.queue!.delay(parameters, state, 1)).toBe(2 * T);
  });
});

describe('slots that are given back between others', () => {
  it('are free for requests that fit in them, the earliest first', () => {
    const state = open(queueOf(1, 3, 1), START + 1);
    give(state, 3, slot(3));
    expect(state.free).toEqual([{ time: slot(3), units: 3 }]);
    expect([take(state, 2), take(state, 1)]).toEqual([slot(2), slot(3)]);
    expect(state.free).toEqual([]);
    expect(endOf(state)).toBe(slot(4));
  });

  it('stay free where a request needs more', () => {
    const state = open(queueOf(1, 1, 1), START + 1);
    give(state, 1, slot(1));
    expect(take(state, 2)).toBe(slot(4));
    expect(state).toMatchObject({ free: [{ time: slot(1), units: 1 }], penalty: 0 });
  });

  it('are several stretches, of which the first that is long enough is taken', () => {
    const state = open(queueOf(1, 1, 1, 2, 1), START + 1);
    give(state, 2, slot(4));
    give(state, 1, slot(1));
    expect(state.free.map(({ time }) => time)).toEqual([slot(1), slot(4)]);
    expect(take(state, 2)).toBe(slot(4));
    expect(state.free).toEqual([{ time: slot(1), units: 1 }]);
  });

  it('become one stretch with those beside them', () => {
    for (const order of [
      [1, 2, 3],
      [3, 2, 1],
      [1, 3, 2],
      [2, 1, 3],
    ]) {
      const state = open(queueOf(1, 1, 1, 1, 1), START + 1);
      for (const number of order) give(state, 1, slot(number));
      expect(state.free).toEqual([{ time: slot(3), units: 3 }]);
    }
  });

  it('are free once, however often they come back', () => {
    const state = open(queueOf(1, 2, 1), START + 1);
    give(state, 2, slot(2));
    give(state, 2, slot(2));
    give(state, 1, slot(2));
    expect(state.free).toEqual([{ time: slot(2), units: 2 }]);
  });

  it('are as many as the larger part that comes back', () => {
    for (const parts of [
      [1, 3],
      [3, 1],
    ]) {
      const state = open(queueOf(1, 3, 1), START + 1);
      for (const units of parts) give(state, units, slot(3));
      expect(state.free).toEqual([{ time: slot(3), units: 3 }]);
    }
  });

  it('are lost when their time has come', () => {
    const state = open(queueOf(1, 2, 1), START + 1);
    give(state, 2, slot(2));
    expect(open(state, slot(1)).free).toEqual([{ time: slot(2), units: 2 }]);
    expect(open(state, slot(1) + 1).free).toEqual([{ time: slot(2), units: 1 }]);
    expect(open(state, slot(2) + 1).free).toEqual([]);
    const late = open(queueOf(1, 1, 1), slot(1) + 1);
    give(late, 1, slot(1));
    expect(late.free).toEqual([]);
  });

  it('take memory each', () => {
    const state = open(queueOf(1, 1, 1), START + 1);
    const before = leakyBucket.bytes!(state);
    give(state, 1, slot(1));
    expect(leakyBucket.bytes!(state)).toBeGreaterThan(before);
  });
});

describe('slots that are given back at the end', () => {
  it('shorten the queue, with the free ones before them', () => {
    const state = open(queueOf(1, 1, 2), START + 1);
    give(state, 1, slot(1));
    give(state, 2, slot(3));
    expect(state).toMatchObject({ free: [], penalty: 0 });
    expect([remaining(state), endOf(state)]).toEqual([9, slot(0)]);
  });

  it('leave the free ones that are not beside them', () => {
    const state = open(queueOf(1, 1, 1, 1), START + 1);
    give(state, 1, slot(1));
    give(state, 1, slot(3));
    expect([state.free, endOf(state)]).toEqual([[{ time: slot(1), units: 1 }], slot(2)]);
  });

  it('go without a ticket, too, with as many free ones as lie there', () => {
    const state = open(queueOf(1, 3, 1), START + 1);
    give(state, 3, slot(3));
    give(state, 2);
    expect([state.free, endOf(state)]).toEqual([[], slot(0)]);
  });
});

describe('a ticket', () => {
  it('of no slot gives nothing back', () => {
    for (const ticket of [slot(-1), slot(0) - 1, slot(1) + 2, slot(2) - 1, slot(3), slot(4)]) {
      const state = open(queueOf(1, 1, 1), START + 1);
      give(state, 1, ticket);
      expect([ticket, state.free, endOf(state)]).toEqual([ticket, [], slot(2)]);
    }
  });

  it('of a slot whose time has come is worth nothing', () => {
    const given = (now: number) => {
      const state = open(queueOf(1, 1, 1), now);
      give(state, 1, slot(0));
      expect(endOf(state)).toBe(slot(2));
      return state.free;
    };
    expect([given(START), given(START + 1)]).toEqual([[{ time: slot(0), units: 1 }], []]);
  });

  it('is found to a tick where slots lie between two', () => {
    const thirds = leakyBucket.compile({ algo: 'leaky-bucket', rate: 3, interval: 0.01, queue: 9 }, 'test');
    const state = leakyBucket.open(thirds, undefined, START);
    const tickets = [1, 1, 1, 1].map((cost) => {
      const ticket = leakyBucket.queue!.ticket(thirds, state, cost);
      leakyBucket.take(thirds, state, cost);
      return ticket - START;
    });
    expect(tickets).toEqual([0, 4, 7, 10]);
    const given = (ticket: number) => {
      const opened = leakyBucket.open(thirds, { ...state }, START + 1);
      leakyBucket.give(thirds, opened, 1, START + ticket);
      return opened.free.length;
    };
    expect([4, 7, 6].map(given)).toEqual([1, 1, 0]);
  });

  it('is worth nothing if it was taken before the clock was set back', () => {
    const later = START + 20_000_000;
    const given = (chargedAt: number | undefined) => {
      const state = open(queueOf(1, 1, 1), START + 1);
      give(state, 1, slot(1), chargedAt);
      return state.free.length;
    };
    expect([later, START + 2, START + 1, START, undefined].map(given)).toEqual([0, 0, 1, 1, 1]);
  });
});

/** Two of five units are left, and then there are two others. */
const cut = () => {
  const state = open(queueOf(1, 1, 1, 1, 1), START + 1);
  give(state, 3);
  const others = open(leakyBucket.save(parameters, state), START + 2);
  return { state: others, tickets: [take(others, 1), take(others, 1)] };
};

describe('units that were taken off the end without a ticket', () => {
  it('make tickets beyond worthless that were given before', () => {
    const { state } = cut();
    expect(state.cut).toEqual({ end: slot(1), at: START + 1 });
    for (const chargedAt of [undefined, START, START + 1]) {
      give(state, 1, slot(2), chargedAt);
      give(state, 1, slot(3), chargedAt);
      expect([state.free, endOf(state)]).toEqual([[], slot(3)]);
    }
  });

  it('leave the ticket of the last unit that was left', () => {
    const { state } = cut();
    give(state, 1, slot(1), START);
    expect(state.free).toEqual([{ time: slot(1), units: 1 }]);
  });

  it('leave the tickets that were given since', () => {
    const { state, tickets } = cut();
    expect(tickets).toEqual([slot(2), slot(3)]);
    give(state, 1, slot(2), START + 2);
    expect(state.free).toEqual([{ time: slot(2), units: 1 }]);
  });

  it('are remembered by the shortest queue that was left', () => {
    const { state } = cut();
    give(state, 1);
    expect(state.cut).toEqual({ end: slot(1), at: START + 2 });
    give(state, 1, slot(2), START + 2);
    expect(endOf(state)).toBe(slot(2));
  });
});

/** Ten units of requests, of which one was given back, and three of a penalty. */
const penalized = () => {
  const state = open(queueOf(1, 1, 8), START);
  give(state, 1, slot(1));
  leakyBucket.take(parameters, state, 4);
  return state;
};

describe('a penalty beyond the quota', () => {
  it('takes what is free first', () => {
    expect(penalized()).toMatchObject({ free: [], penalty: 3, debt: 13 * T });
    const state = open(queueOf(1, 2, 7), START);
    give(state, 2, slot(2));
    leakyBucket.take(parameters, state, 1);
    expect(state).toMatchObject({ penalty: 0, free: [{ time: slot(2), units: 1 }] });
  });

  it('is settled by what comes back', () => {
    const state = penalized();
    give(state, 2, slot(3));
    expect(state).toMatchObject({ penalty: 1, debt: 11 * T, free: [] });
    give(state, 2, slot(3));
    expect(state).toMatchObject({ penalty: 0, debt: 10 * T, free: [{ time: slot(3), units: 1 }] });
  });

  it('is settled to the last unit before anything is free', () => {
    const state = penalized();
    give(state, 3, slot(4));
    expect(state).toMatchObject({ penalty: 0, debt: 10 * T, free: [] });
  });

  it('is taken off the end with units that have no ticket', () => {
    const state = penalized();
    give(state, 2);
    expect(state).toMatchObject({ penalty: 1, debt: 11 * T });
    give(state, 5);
    expect(state).toMatchObject({ penalty: 0, debt: 6 * T });
  });

  it('is known while more is owed than the quota', () => {
    const stored = leakyBucket.save(parameters, penalized());
    expect(open(stored, START + 3 * T - 1).penalty).toBe(3);
    expect(open(stored, START + 3 * T).penalty).toBe(0);
  });
});
