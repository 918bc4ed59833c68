import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MemoryStore } from '../../../lib/index.js';
import { type Lease, Leases } from '../../../lib/engine/algorithms/leases.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { ask, compile, ManualClock } from '../../support/limits/stores.js';

const RUNS = propertyRuns(60);

/** The same, told naively: a list by when they end, of equal ones the first that was added first. */
class Model {
  leases: Lease[] = [];

  add(lease: Lease): void {
    const after = this.leases.findLastIndex(({ end }) => end <= lease.end) + 1;
    this.leases.splice(after, 0, lease);
  }

  ended(now: number): { count: number; units: number } {
    const ended = this.leases.filter(({ end }) => end <= now);
    return { count: ended.length, units: sum(ended) };
  }

  freeing(units: number, position: number): number {
    let missing = units;
    return (this.leases.slice(position).find((lease) => (missing -= lease.units) <= 0) ?? this.leases.at(-1)!).end;
  }
}

const sum = (leases: readonly Lease[]) => leases.reduce((total, { units }) => total + units, 0);

const actions = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('add' as const), at: fc.nat(1000), many: fc.nat(120) }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('remove' as const), at: fc.nat(1000), many: fc.nat(60) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), at: fc.nat(600), many: fc.nat(1) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('move' as const), at: fc.nat(1000), many: fc.nat(1) }) },
  ),
  { minLength: 1, maxLength: 30 },
);

/**
 * The time that the process needs to grant, refuse and release two hundred times while so many are held: microseconds. The least
 * of several times, since garbage may be collected in any.
 */
async function cpu(held: number): Promise<number> {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock: clock.now });
  const limit = compile({ algo: 'concurrency', limit: held + 1, ttl: '1h' });
  const identity = 'user:42';
  const entry = { limit, identity, cost: 1 };
  await store.check(Array.from({ length: held }, () => ({ entries: [entry] })));
  const once = async () => {
    clock.advanceMs(0.1);
    const granted = await ask(store, limit, { identity });
    const refused = await ask(store, limit, { identity, cost: 2 });
    expect([granted.allowed, refused.allowed]).toEqual([true, false]);
    await store.refund([{ ...entry, units: 1, ticket: granted.ticket }]);
  };
  for (let i = 0; i < 300; i++) await once();
  const times: number[] = [];
  for (let run = 0; run < 5; run++) {
    const before = process.cpuUsage();
    for (let i = 0; i < 200; i++) await once();
    const { user, system } = process.cpuUsage(before);
    times.push(user + system);
  }
  await store.close();
  return Math.min(...times);
}

describe('leases', () => {
  it('are found, counted and taken away as in a plain list, however many there are', () => {
    fc.assert(
      fc.property(actions, fc.boolean(), fc.nat(1100), fc.nat(300), (history, weighs, now, missing) => {
        const leases = new Leases();
        const model = new Model();
        let id = 0;
        for (const { kind, at, many } of history) {
          for (let i = kind === 'add' ? 0 : many; i < many; i++) {
            const lease = { id: ++id, units: weighs ? 1 + (id % 3) : 1, end: at + (i % 7) * 3 };
            leases.add(lease, 5);
            model.add(lease);
          }
          for (let i = kind === 'remove' ? 0 : many; i < many && model.leases.length > 0; i++) {
            const [lease] = model.leases.splice((at + i * 37) % model.leases.length, 1);
            expect(leases.find(lease!.id, lease!.units + 1)).toBeUndefined();
            leases.remove(leases.find(lease!.id, lease!.units)!);
            expect(leases.find(lease!.id, lease!.units)).toBeUndefined();
          }
          if (kind === 'drop') {
            leases.dropEnded(at);
            model.leases = model.leases.filter(({ end }) => end > at);
          }
          if (kind === 'move') {
            leases.endAllAt(at);
            model.leases = model.leases.map((lease) => ({ ...lease, end: at }));
          }
          expect([leases.count, leases.units]).toEqual([model.leases.length, sum(model.leases)]);
          expect(leases.lastEnd).toBe(model.leases.at(-1)?.end);
        }
        const ended = model.ended(now);
        expect(leases.endedAt(now)).toEqual(ended);
        if (ended.count === model.leases.length) return;
        expect(leases.freeing(missing + 1, ended.count, Infinity).end).toBe(model.freeing(missing + 1, ended.count));
        // What is not looked at counts as one unit each: never too short a wait.
        expect(leases.freeing(missing + 1, ended.count, 50).end).toBeGreaterThanOrEqual(
          model.freeing(missing + 1, ended.count),
        );
      }),
      { numRuns: RUNS },
    );
  });

  it('of 50,000 take about as long to hold and to release as 500', async () => {
    await cpu(500);
    const few = await cpu(500);
    // A hundred times as many took more than a hundred times as long when each check copied them.
    expect((await cpu(50_000)) / few).toBeLessThan(15);
  });
});
