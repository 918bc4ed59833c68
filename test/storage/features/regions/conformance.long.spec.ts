import { afterAll, beforeAll, describe, it } from '@jest/globals';
import fc from 'fast-check';
import { PROPERTY_TIMEOUT_MS, propertyRuns } from '../../../support/limits/property-runs.js';
import { type RedisServer, startRedis } from '../../../support/redis/redis-servers.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { ConformanceStage, type Kind, type Servers } from './conformance-stage.js';

const RUNS = propertyRuns(40);
const SECOND = 1_000_000;

const KINDS: Readonly<Record<string, Kind>> = {
  'sliding-log': {
    terms: { kind: 'log', quota: 5, interval: 2 * SECOND },
    options: { algo: 'sliding-log', rate: 5, interval: '2s' },
  },
  'fixed-window': {
    terms: { kind: 'fixed', quota: 5, interval: 2 * SECOND },
    options: { algo: 'fixed-window', rate: 5, interval: '2s' },
  },
  'calendar-window': {
    terms: { kind: 'calendar', quota: 5, interval: 60 * SECOND },
    options: { algo: 'calendar-window', rate: 5, period: 'minute' },
  },
};

type Step = (stage: ConformanceStage) => Promise<void> | void;

const region = fc.constantFrom(0, 1);
const has = fc.constantFrom('all' as const, 'copy' as const, 'nothing' as const);

/** A step as data, so that a failure tells its history. */
const steps = {
  pass:
    (share: number, kind: Kind): Step =>
    (stage) =>
      stage.pass(Math.ceil(share * kind.terms.interval)),
  ask:
    (index: number, waiting: number): Step =>
    (stage) =>
      stage.ask(index, waiting),
  grant:
    (which: number, isLast: boolean): Step =>
    (stage) =>
      stage.grant(which, isLast),
  deposit:
    (which: number, isLast: boolean, wasReset: boolean): Step =>
    (stage) =>
      stage.deposit(which, isLast, wasReset),
  forget:
    (index: number): Step =>
    (stage) =>
      stage.forget(index),
  hello:
    (index: number): Step =>
    (stage) =>
      stage.hello(index),
  consume:
    (index: number, cost: number): Step =>
    (stage) =>
      stage.consume(index, cost),
  refund:
    (index: number): Step =>
    (stage) =>
      stage.refund(index),
  penalize:
    (index: number): Step =>
    (stage) =>
      stage.penalize(index),
  doubt:
    (micros: number): Step =>
    (stage) =>
      stage.doubt(micros),
  setHomeBack:
    (share: number, kind: Kind): Step =>
    (stage) =>
      stage.setHomeBack(Math.ceil(share * kind.terms.interval)),
  reset: (): Step => (stage) => stage.reset(),
  copyHome: (): Step => (stage) => stage.copyHome(),
  replaceHome:
    (has: 'all' | 'copy' | 'nothing'): Step =>
    (stage) =>
      stage.replaceHome(has),
  copyRegion:
    (index: number): Step =>
    (stage) =>
      stage.copyRegion(index),
  replaceRegion:
    (index: number, has: 'all' | 'copy' | 'nothing'): Step =>
    (stage) =>
      stage.replaceRegion(index, has),
};
type Named = { [N in keyof typeof steps]: readonly [N, ...Parameters<(typeof steps)[N]>] }[keyof typeof steps];

function historiesOf(kind: Kind): fc.Arbitrary<Named[]> {
  const common: fc.Arbitrary<Named>[] = [
    fc.tuple(fc.constant('ask'), region, fc.integer({ min: 0, max: 6 })),
    fc.tuple(fc.constant('grant'), fc.nat(3), fc.boolean()),
    fc.tuple(
      fc.constant('deposit'),
      fc.nat(3),
      fc.boolean(),
      fc.nat(9).map((chance) => chance === 0),
    ),
    fc.tuple(fc.constant('consume'), region, fc.integer({ min: 1, max: 3 })),
  ] as fc.Arbitrary<Named>[];
  const others: fc.Arbitrary<Named>[] = [
    fc.tuple(fc.constant('pass'), fc.constantFrom(0.01, 0.1, 0.3, 1.1), fc.constant(kind)),
    fc.tuple(fc.constant('hello'), region),
    fc.tuple(fc.constantFrom('refund', 'penalize', 'forget'), region),
    fc.tuple(fc.constant('doubt'), fc.constantFrom(0, 1, 1000)),
    fc.tuple(fc.constantFrom('copyHome', 'reset')),
    fc.tuple(fc.constant('copyRegion'), region),
  ] as fc.Arbitrary<Named>[];
  const rare: fc.Arbitrary<Named>[] = [
    fc.tuple(fc.constant('replaceHome'), has),
    fc.tuple(fc.constant('replaceRegion'), region, has),
    // The windows of the other algorithms are compared with a clock set back by the specs of these.
    ...(kind.terms.kind === 'log'
      ? [fc.tuple(fc.constant('setHomeBack'), fc.constantFrom(0.01, 0.4, 2), fc.constant(kind))]
      : []),
  ] as fc.Arbitrary<Named>[];
  const step = fc.oneof(
    ...common.map((arbitrary) => ({ arbitrary, weight: 10 })),
    ...others.map((arbitrary) => ({ arbitrary, weight: 3 })),
    ...rare.map((arbitrary) => ({ arbitrary, weight: 1 })),
  );
  return fc.array(step, { minLength: 10, maxLength: 80, size: 'max' });
}

describe('the scripts do as the model of the protocol, step by step', () => {
  let servers: Servers & { readonly all: readonly RedisServer[] };
  beforeAll(async () => {
    const args = ['--enable-debug-command', 'yes'];
    const all = await Promise.all([0, 1, 2].map(() => startRedis({ args })));
    const [home, ...regions] = all;
    servers = { home: home!, regions, all };
  });
  afterAll(() => Promise.all(servers.all.map((server) => server.stop())));

  it.each(Object.entries(KINDS))(
    'of %s, whatever fails',
    (_, kind) =>
      fc.assert(
        fc.asyncProperty(historiesOf(kind), async (history) => {
          const stage = await ConformanceStage.open(kind, servers, freshPrefix());
          try {
            // Regions that are known, as in most of the time of an app.
            for (const index of [0, 1, 0, 1]) await stage.hello(index);
            for (const [name, ...args] of history) await (steps[name] as (...all: typeof args) => Step)(...args)(stage);
          } finally {
            await stage.close();
          }
        }),
        { numRuns: RUNS },
      ),
    PROPERTY_TIMEOUT_MS,
  );
});
