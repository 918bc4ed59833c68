import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { Refund, StoreDecision } from '../../../lib/testing/store/index.js';
import { settle } from '../../../lib/app/limiter/settlement.js';
import { costOf, costShare, optionsOf } from '../../support/limits/arbitraries.js';
import { assertSideBySide, propertyRuns } from '../../support/limits/property-runs.js';
import { chargeOf, compile, connectRedis, ManualClock, storeKinds, tickOf } from '../../support/limits/stores.js';
import { microsOf } from './models.js';

const RUNS = propertyRuns(100);

/** Units that leave the queue together, unless they are refunded before. */
interface Reserved {
  readonly taken: Refund;
  /** In microseconds. */
  readonly time: number;
  units: number;
  /** Whether they were cancelled or settled. */
  isDone: boolean;
}

/** One operation on the queue. */
const step = fc.record({
  kind: fc.constantFrom('take', 'take', 'reserve', 'reserve', 'cancel', 'cancel', 'settle', 'refund', 'penalize'),
  units: costShare,
  /** The index of the units in the queue, as a share. */
  which: fc.double({ min: 0, max: 0.999, noNaN: true }),
  /** The advance of the clock, in times between two units. */
  clock: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 2, noNaN: true })),
});

const history = fc.array(step, { minLength: 1, maxLength: 60 });

describe('units leave a leaky bucket no faster than its rate, after any operations', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  it.each(Object.keys(storeKinds))('%s', async (kind) => {
    await assertSideBySide(
      fc.asyncProperty(optionsOf['leaky-bucket'], history, fc.boolean(), async (options, steps, penalizes) => {
        const clock = new ManualClock();
        const limit = compile(options);
        const counter = { limit, identity: 'ip:203.0.113.7' };
        const tick = tickOf(limit);
        const spacing = Number(microsOf(options.interval)) / options.rate;
        // Units of one tick have no order.
        fc.pre(spacing >= 3 * tick);
        const store = storeKinds[kind]!(clock, redis);
        const reserved: Reserved[] = [];
        const add = (decision: StoreDecision, units: number) => {
          if (!decision.allowed) return;
          reserved.push({
            taken: chargeOf({ ...counter, cost: units }, decision),
            time: decision.ticket! * tick,
            units,
            isDone: false,
          });
        };
        try {
          for (const { kind: what, units: share, which, clock: ahead } of steps) {
            clock.micros += Math.round(ahead * spacing);
            const units = costOf(share, limit.quota);
            const one = reserved[Math.floor(which * reserved.length)];
            if (what === 'take') {
              const [decisions] = await store.check([{ entries: [{ ...counter, cost: units }], refundable: true }]);
              add(decisions![0]!, units);
            } else if (what === 'reserve') {
              const maxWaitMs = which * 2 * limit.windowMs(0);
              add(await store.reserve({ ...counter, cost: units, maxWaitMs }), units);
            } else if (what === 'penalize') {
              if (penalizes) await store.penalize({ ...counter, units });
            } else if (what === 'cancel' || what === 'settle') {
              if (one === undefined || one.isDone) continue;
              const actual = what === 'settle' ? Math.floor(which * one.taken.units) : 0;
              await settle(store, one.taken, actual);
              one.units = Math.min(one.units, actual);
              one.isDone = true;
            } else if (!penalizes) {
              // This takes the last units off the queue, without their holder.
              const last = reserved
                .filter((each) => each.units > 0)
                .toSorted((a, b) => a.time - b.time)
                .at(-1);
              if (last === undefined || last.isDone) continue;
              await store.refund([{ ...counter, units: last.units }]);
              last.units = 0;
              // Units of the same microsecond could get the same ticket.
              clock.micros++;
            }
          }
        } finally {
          await store.close();
        }
        const left = reserved.filter(({ units }) => units > 0).toSorted((a, b) => a.time - b.time);
        const tooClose = left.filter(
          ({ time, units }, index) => index > 0 && time - left[index - 1]!.time + tick < units * spacing,
        );
        expect(tooClose.map(({ time, units: of }) => ({ time, units: of }))).toEqual([]);
      }),
      RUNS,
    );
  });
});
