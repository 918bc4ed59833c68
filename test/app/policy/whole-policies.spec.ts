import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Logger, Module } from '@nestjs/common';
import fc from 'fast-check';
import { type LimitMode, RateLimit, RateLimitModule } from '../../../lib/index.js';
import { TriedApp } from '../../docs/tried-app.js';
import { RatesApp } from '../overrides/overrides-app.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { tell } from './tell.js';

beforeEach(() => {
  for (const level of ['log', 'warn', 'error'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation(() => undefined);
  }
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Both limits are of the same version if these are equal. */
const version = (rate: number) => ({ limits: { first: { rate }, second: { rate } } });

describe('a check', () => {
  let opened: Promise<void>;
  let open: () => void;
  let asked: Promise<void>;
  let tellAsked: () => void;
  let app: TriedApp;

  @Controller()
  class WaitingController {
    @Get()
    @RateLimit('first', 'second')
    get() {}
  }

  @Module({
    imports: [
      RateLimitModule.forRoot({
        policy: { source: () => version(10) },
        define: {
          first: { algo: 'gcra', rate: 1, interval: '1h', key: () => 'a' },
          second: {
            algo: 'gcra',
            rate: 1,
            interval: '1h',
            key: async () => {
              tellAsked();
              await opened;
              return 'a';
            },
          },
        },
      }),
    ],
    controllers: [WaitingController],
  })
  class AppModule {}

  beforeEach(() => {
    asked = new Promise((resolve) => (tellAsked = resolve));
    opened = new Promise((resolve) => (open = resolve));
  });
  afterEach(() => app.close());

  it('that waits for a key while the policy changes decides by all of the new one', async () => {
    app = await TriedApp.start({ imports: [AppModule] });
    const quotas: number[] = [];
    app.limiters.decisions$.subscribe(({ quota }) => quotas.push(quota));
    const answer = app.get();
    await asked;
    tell(app.nest, version(20));
    open();
    expect((await answer).status).toBe(200);
    expect(quotas).toEqual([20, 20]);
  });

  it('decides by one version, however often the policy changes', async () => {
    open();
    app = await TriedApp.start({ imports: [AppModule] });
    const checks: number[][] = [];
    for (let round = 1; round <= 200; round++) {
      const check = app.limiters.check([
        { limit: 'first', key: `${round}` },
        { limit: 'second', key: `${round}` },
      ]);
      tell(app.nest, version(10 + round));
      if (round % 3 === 0) tell(app.nest, { limits: { first: { rate: 7 }, second: { rate: 0 } } });
      checks.push((await check).decisions.map(({ quota }) => quota));
    }
    expect(checks).toEqual(checks.map((_, round) => [10 + round, 10 + round]));
  });
});

/** The keys that may have an override of an identity, the most specific first. */
function chainOf(identity: string): string[] {
  const prefixes = ['t:b*', 't:*'].filter((prefix) => identity.startsWith(prefix.slice(0, -1)));
  return [identity, ...prefixes, ''];
}

describe('any history of policies and changes by operators', () => {
  const rate = fc.integer({ min: 1, max: 50 });
  const mode = fc.constantFrom<LimitMode>('enforce', 'shadow', 'off');
  const key = fc.constantFrom('', 't:a', 't:*', 't:b*', 'x');
  const said = fc.record({ rate, mode }, { requiredKeys: [] }).filter((each) => Object.keys(each).length > 0);
  const overrides = fc.dictionary(fc.constantFrom('t:a', 't:*', 't:b*', 'x'), said);
  const policy = fc.record({ limit: said, overrides, isWrong: fc.boolean() }, { requiredKeys: ['isWrong'] });
  const step = fc.oneof(
    fc.record({ kind: fc.constant('policy' as const), policy }),
    fc.record({ kind: fc.constant('rate' as const), key, rate: fc.option(rate) }),
    fc.record({ kind: fc.constant('mode' as const), key, mode: fc.option(mode) }),
  );
  const KEYS = ['t:a', 't:b1', 't:c', 'x', 'y'];

  it('makes what the most specific of them says, and of one key what the operator says', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const app = await RatesApp.start({ policy: { source: () => ({}) } });
        try {
          const operator = { rate: new Map<string, number>(), mode: new Map<string, LimitMode>() };
          let current: Record<string, { rate?: number; mode?: LimitMode }> = {};
          for (const each of steps) {
            const options = 'key' in each && each.key !== '' ? { key: each.key } : {};
            if (each.kind === 'policy') {
              const { limit, overrides: keys = {}, isWrong } = each.policy;
              const limits = { ...(limit && { login: limit }), ...(isWrong && { hourly: { queue: 1 } }) };
              tell(app.nest, { limits, overrides: { login: keys } });
              if (!isWrong) current = { ...keys, ...(limit && { '': limit }) };
            } else if (each.kind === 'rate') {
              if (each.rate === null) await app.service.clearRate('login', options);
              else await app.service.setRate('login', { rate: each.rate }, options);
              if (each.rate === null) operator.rate.delete(each.key);
              else operator.rate.set(each.key, each.rate);
            } else {
              if (each.mode === null) await app.service.clearMode('login', options);
              else await app.service.setMode('login', each.mode, options);
              if (each.mode === null) operator.mode.delete(each.key);
              else operator.mode.set(each.key, each.mode);
            }
          }
          for (const identity of KEYS) {
            const chain = chainOf(identity);
            const rates = chain.map((at) => operator.rate.get(at) ?? current[at]?.rate);
            const modes = chain.map((at) => operator.mode.get(at) ?? current[at]?.mode);
            const told = await app.service.getRate('login', { key: identity });
            const wantedRate = rates.find((found) => found !== undefined) ?? 10;
            const wantedMode = modes.find((found) => found !== undefined) ?? 'enforce';
            expect(told.options).toMatchObject({ rate: wantedRate });
            expect((await app.service.getMode('login', { key: identity })).mode).toBe(wantedMode);
            // What decides is what is told.
            const { allowed, quota } = await app.service.for('login').consume(identity, wantedRate + 1);
            expect({ allowed, quota }).toEqual({ allowed: wantedMode !== 'enforce', quota: wantedRate });
          }
        } finally {
          await app.close();
        }
      }),
      { numRuns: propertyRuns(60) },
    );
  });
});
