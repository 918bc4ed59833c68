import { afterAll, beforeAll, describe, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { assertSideBySide, PROPERTY_TIMEOUT_MS, propertyRuns } from '../../support/limits/property-runs.js';
import { connectRedis } from '../../support/limits/stores.js';
import { EXAMPLES } from './plan-examples.js';
import type { Settings } from './plan-model.js';
import { type Kind, PlanStage, type Step } from './plan-stage.js';

const RUNS = propertyRuns(600);
const REDIS_RUNS = propertyRuns(150);

const plans: fc.Arbitrary<Kind> = fc.record(
  {
    algo: fc.constantFrom('calendar-window' as const, 'budget' as const),
    rollover: fc.constantFrom(0.5 as const, 1 as const),
    credits: fc.constant(true as const),
    holdHours: fc.constantFrom(1, 5, 30),
    anchorHour: fc.constantFrom(6, 17),
    retains: fc.boolean(),
  },
  { requiredKeys: ['algo', 'holdHours', 'retains'] },
);

const windows: fc.Arbitrary<Kind> = fc.record({
  algo: fc.constant('fixed-window' as const),
  holdHours: fc.constantFrom(1, 5, 30),
  retains: fc.constant(false),
});
const kinds = fc.oneof({ weight: 4, arbitrary: plans }, { weight: 1, arbitrary: windows });
const units = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 120 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 1500 }) },
);
const settings = fc.record({ rate: fc.constantFrom(10, 10, 20, 100, 1000), releases: fc.boolean() });
const minutes = fc.oneof(fc.constantFrom(1, 61, 301, 1440, 1440), fc.integer({ min: 1, max: 4000 }));
const steps = fc.array(
  fc.oneof<fc.Arbitrary<Step>[]>(
    fc.record({ do: fc.constant('wait' as const), minutes }),
    fc.record({ do: fc.constant('wait' as const), minutes }),
    fc.record({ do: fc.constantFrom('consume' as const, 'reserve' as const), units }),
    fc.record({ do: fc.constantFrom('consume' as const, 'reserve' as const), units }),
    fc.record({ do: fc.constant('look' as const), units: fc.oneof(units, fc.integer({ min: 1, max: 3000 })) }),
    fc.record({ do: fc.constantFrom('refund' as const, 'penalize' as const, 'withdraw' as const), units }),
    fc.record(
      { do: fc.constant('credit' as const), units, id: fc.constantFrom('a', 'b') },
      { requiredKeys: ['do', 'units'] },
    ),
    fc.record({
      do: fc.constantFrom('settle' as const, 'settle' as const, 'give back' as const),
      which: fc.nat(20),
      units,
    }),
    fc.record({ do: fc.constantFrom('reset' as const, 'read' as const) }),
    fc.record({ do: fc.constant('change' as const), settings }),
  ),
  { minLength: 1, maxLength: 25 },
);

async function agrees(kind: Kind, first: Settings, history: readonly Step[], remote?: Redis): Promise<void> {
  const stage = new PlanStage(kind, first, remote);
  try {
    for (const step of history) await stage.take(step);
    await stage.compareRecords();
  } finally {
    await stage.close();
  }
}

describe('plans and holds are as a naive model has them, on any history of a clock that goes forward', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  it.each(Object.entries(EXAMPLES))('as when %s', (_, { kind, settings: first, history }) =>
    agrees(kind, first, history, redis),
  );

  it(
    'in the process',
    async () => {
      await fc.assert(
        fc.asyncProperty(kinds, settings, steps, (kind, first, history) => agrees(kind, first, history)),
        { numRuns: RUNS },
      );
    },
    PROPERTY_TIMEOUT_MS,
  );

  it(
    'on Redis',
    async () => {
      const property = fc.asyncProperty(kinds, settings, steps, (kind, first, history) =>
        agrees(kind, first, history, redis),
      );
      await assertSideBySide(property, REDIS_RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );
});
