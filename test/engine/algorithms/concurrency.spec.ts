import { describe, expect, it } from '@jest/globals';
import { concurrency, type ConcurrencyState } from '../../../lib/engine/algorithms/concurrency.js';

const TTL = 10_000_000;
const START = 1_000_000_000;
const compiled = (ttl: string) => concurrency.compile({ algo: 'concurrency', limit: 5, ttl }, 'test');
const parameters = compiled('10s');

const open = (stored: ConcurrencyState | undefined, now: number, by = parameters) => concurrency.open(by, stored, now);

/** Takes leases of so many units, a second after each other, from `START` on. */
function held(...costs: number[]) {
  let state: ConcurrencyState | undefined;
  const tickets = costs.map((cost, index) => {
    const opened = open(state, START + index * 1_000_000);
    const ticket = concurrency.leases!.ticket(parameters, opened, cost);
    concurrency.take(parameters, opened, cost);
    state = concurrency.save(parameters, opened);
    return ticket;
  });
  return { state: state!, tickets };
}

const remaining = (state: ConcurrencyState) => concurrency.remaining(parameters, state);

describe('what a limit of concurrency holds', () => {
  it('is all that was taken, until it ends', () => {
    const { state } = held(2, 1);
    const left = (now: number) => remaining(open(state, now));
    expect([START + TTL - 1, START + TTL, START + TTL + 999_999, START + TTL + 1_000_000].map(left)).toEqual([
      2, 4, 4, 5,
    ]);
  });

  it('fits up to the limit', () => {
    const { state } = held(3);
    const opened = open(state, START + 1);
    expect([1, 2, 3].map((cost) => concurrency.fits(parameters, opened, cost))).toEqual([true, true, false]);
  });

  it('is free when enough leases have ended', () => {
    const opened = open(held(2, 2, 1).state, START + 3_000_000);
    const waits = [1, 2, 3, 4, 5].map((cost) => concurrency.retryAfter(parameters, opened, cost));
    expect(waits).toEqual([7, 7, 8, 8, 9].map((seconds) => seconds * 1_000_000));
  });

  it('is reset when the last lease ends, or at once if all have', () => {
    const { state } = held(2, 1);
    expect(concurrency.resetAfter(parameters, open(state, START + 1))).toBe(TTL + 1_000_000 - 1);
    expect(concurrency.resetAfter(parameters, open(state, START + TTL + 1_000_000))).toBe(0);
    expect(concurrency.resetAfter(parameters, open(undefined, START))).toBe(0);
  });

  it('is forgotten with the next charge once it has ended', () => {
    const opened = open(held(2, 1).state, START + TTL);
    concurrency.take(parameters, opened, 1);
    expect(opened.leases.count).toBe(2);
    expect(remaining(opened)).toBe(3);
    expect(concurrency.save(parameters, open(opened, START + 3 * TTL)).leases.count).toBe(0);
  });

  it('takes memory with each lease', () => {
    const [one, two] = [held(1).state, held(1, 1).state].map((state) => concurrency.bytes!(state));
    expect(two).toBeGreaterThan(one!);
    expect(one).toBeGreaterThan(concurrency.bytes!(open(undefined, START)));
  });
});

describe('a lease', () => {
  const found = 1_500_000 + START;

  it('has an identifier of its own, which every client reads exactly', () => {
    const { state, tickets } = held(1, 1);
    const opened = open(state, found);
    const next = concurrency.leases!.ticket(parameters, opened, 1);
    concurrency.take(parameters, opened, 1);
    const all = [...tickets, next, concurrency.leases!.ticket(parameters, opened, 1)];
    expect(new Set(all).size).toBe(4);
    expect(all.every((id) => Number.isSafeInteger(id) && id >= 0)).toBe(true);
    const many = Array.from({ length: 100 }, () => concurrency.scriptParameters(parameters, START)[1] as number);
    // The script counts on from it, for all that one call grants.
    expect(many.every((id) => Number.isSafeInteger(id) && id % 512 === 0)).toBe(true);
    expect(new Set(many).size).toBe(100);
  });

  it('comes back by its ticket, with all of its units', () => {
    const { state, tickets } = held(2, 1);
    for (const [units, ticket] of [
      [2, undefined],
      [1, tickets[0]],
      [2, tickets[1]],
      [2, -1],
    ] as const) {
      const opened = open(state, found);
      concurrency.give(parameters, opened, units, ticket);
      expect(remaining(opened)).toBe(2);
    }
    const opened = open(state, found);
    concurrency.give(parameters, opened, 2, tickets[0]);
    expect(remaining(opened)).toBe(4);
  });

  it('is renewed from now on, unless it has ended', () => {
    const { state, tickets } = held(2);
    const { leases } = concurrency;
    expect(leases!.renew(parameters, open(state, START + TTL), 2, tickets[0]!)).toBe(false);
    const opened = open(state, START + TTL - 1);
    expect(leases!.renew(parameters, opened, 2, tickets[0]!)).toBe(true);
    expect(remaining(opened)).toBe(3);
    expect(concurrency.resetAfter(parameters, opened)).toBe(TTL);
    expect(leases!.renew(parameters, opened, 2, -1)).toBe(false);
  });
});

describe('leases on a clock that was set back', () => {
  it('end at their time if it was by less than a ttl', () => {
    const opened = open(held(2).state, START - TTL + 1);
    expect(opened.migrated).toBe(false);
    expect(remaining(opened)).toBe(3);
    expect(concurrency.retryAfter(parameters, opened, 4)).toBe(2 * TTL - 1);
    expect(concurrency.resetAfter(parameters, opened)).toBe(2 * TTL - 1);
  });

  it('all end in a ttl if it was by one or more', () => {
    const { state } = held(2, 1);
    const now = START + 1_000_000 - TTL;
    const opened = open(state, now);
    expect(opened.migrated).toBe(true);
    expect(remaining(opened)).toBe(2);
    expect(concurrency.retryAfter(parameters, opened, 3)).toBe(TTL);
    expect(concurrency.resetAfter(parameters, opened)).toBe(TTL);
    const saved = concurrency.save(parameters, opened);
    const left = [now + TTL - 1, now + TTL].map((later) => remaining(open(saved, later)));
    expect(left).toEqual([2, 5]);
    expect(concurrency.resetAfter(parameters, open(saved, now + 1))).toBe(TTL - 1);
  });

  it('are settled once', () => {
    const opened = open(held(2).state, START - TTL);
    concurrency.take(parameters, opened, 1);
    concurrency.take(parameters, opened, 1);
    expect(opened.collapsed).toBe(false);
    expect(concurrency.resetAfter(parameters, opened)).toBe(TTL);
  });

  it('count by the longest ttl that one of them has', () => {
    const { state } = held(2);
    const shorter = open(state, START - TTL + 1, compiled('1s'));
    expect(shorter.migrated).toBe(false);
    const longer = open(state, START - TTL, compiled('20s'));
    expect(longer.migrated).toBe(false);
    expect(open(state, START - 3 * TTL, compiled('20s'))).toMatchObject({ migrated: true, longest: 2 * TTL });
  });
});
