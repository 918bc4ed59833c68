import { describe, expect, it } from '@jest/globals';
import {
  type Explanation,
  formatExplanation,
  type LimitDefinition,
  MemoryStore,
  RateLimitConfigError,
  type RateLimitModuleOptions,
  type Store,
} from '../../../lib/index.js';
import type { Charge, Check, Counter, HeldLease, Refund, ReserveEntry } from '../../../lib/testing/store/index.js';
import { RatesApp, startForEach } from '../../app/overrides/overrides-app.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { variants } from '../../support/tier.js';
import { atPlace } from '../../support/limits/at-place.js';

const HOUR = 3_600_000;
const KEY = 'tenant:acme';

const define = {
  api: { algo: 'fixed-window', rate: 10, interval: '1h' },
  strict: { algo: 'fixed-window', rate: 1, interval: '1h', blockFor: '2h' },
  queue: { algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 5 },
  jobs: { algo: 'concurrency', limit: 2, ttl: '1m' },
  tried: { algo: 'gcra', rate: 1, interval: '1h', mode: 'shadow' },
  own: { algo: 'gcra', rate: 5, interval: '1h', scope: 'instance' },
} as const satisfies Record<string, LimitDefinition>;

const kinds: Record<string, () => RateLimitModuleOptions> = {
  'on Redis': () => ({ define, redis: process.env['TEST_REDIS_URL'], prefix: freshPrefix() }),
  'in process': () => ({ define }),
};

describe.each(variants(Object.entries(kinds)))('a limit and a key are explained, %s', (kind, options) => {
  let app: RatesApp;
  const onRedis = kind === 'on Redis';

  startForEach(options, (started) => (app = started));

  /** Explains, and checks what holds of every explanation. */
  async function explain(limit: string | LimitDefinition, key = KEY, cost?: number): Promise<Explanation> {
    const explanation = await app.service.explain({ limit, key, ...(cost === undefined ? {} : { cost }) });
    expect(JSON.parse(JSON.stringify(explanation))).toStrictEqual(explanation);
    expect(formatExplanation(explanation)).toContain(`limit '${explanation.subject.limit}'`);
    return explanation;
  }

  it('with all that is known of them', async () => {
    await app.service.for('api').consume(KEY, 4);
    const before = Date.now();
    const { at, limits, ...rest } = await explain('api');
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(Date.now());
    expect(rest).toEqual({
      subject: { kind: 'limit', limit: 'api' },
      outcome: { verdict: 'allowed', refusedBy: [], retryAfterMs: 0, delayMs: 0 },
      leftOut: [],
      functions: [],
    });
    expect(limits).toEqual([
      {
        name: 'api',
        origin: { level: 'defined', location: 'define.api' },
        replaces: [],
        status: 'asked',
        rate: { options: { algo: 'fixed-window', rate: 10, interval: '1h' }, source: 'configured' },
        mode: { mode: 'enforce', source: 'configured' },
        quota: 10,
        key: { by: 'ip', identity: KEY, counter: expect.stringMatching(/:\{tenant:acme\}::api:\w\w$/) },
        cost: 1,
        state: {
          remaining: 6,
          resetAfterMs: expect.any(Number),
          blockedForMs: 0,
          source: onRedis ? 'redis' : 'memory',
        },
        decision: { allowed: true, retryAfterMs: 0, delayMs: 0 },
      },
    ]);
    expect(limits[0]!.state!.resetAfterMs).toBeGreaterThan(HOUR - 60_000);
  });

  it('with a cost that does not fit, or never can', async () => {
    await app.service.for('api').consume(KEY, 4);
    const { outcome, limits } = await explain('api', KEY, 7);
    expect(outcome).toMatchObject({ verdict: 'refused', refusedBy: ['api'] });
    expect(outcome.retryAfterMs).toBeGreaterThan(HOUR - 60_000);
    expect(limits[0]).toMatchObject({ cost: 7, decision: { allowed: false, retryAfterMs: outcome.retryAfterMs } });
    const never = await explain('api', KEY, 11);
    expect(never.outcome).toMatchObject({ verdict: 'refused', retryAfterMs: null });
    expect(formatExplanation(never)).toContain("limit 'api': refused by 'api', never fits");
  });

  it('under the overrides of a key, of a beginning and of all', async () => {
    const { service } = app;
    await service.setRate('api', { rate: 50 });
    expect((await explain('api')).limits[0]).toMatchObject({ quota: 50, rate: { source: 'limit' } });
    await service.setRate('api', { rate: 60 }, { key: 'tenant:*', by: 'eva', reason: 'migration', expiresIn: '2d' });
    const pattern = await explain('api');
    expect(pattern.limits[0]).toMatchObject({
      quota: 60,
      rate: {
        options: { rate: 60, interval: '1h' },
        source: 'pattern',
        configured: { rate: 10 },
        override: { key: 'tenant:*', by: 'eva', reason: 'migration', version: 2 },
      },
    });
    expect(formatExplanation(pattern)).toMatch(
      /rate by the override of 'tenant:\*' until 20\d\d-\S+, change 2 \(eva: migration\), configured fixed-window:10\/1h/,
    );
    await service.setRate('api', { rate: 5 }, { key: KEY });
    expect((await explain('api')).limits[0]).toMatchObject({ quota: 5, rate: { source: 'key' } });
    expect((await explain('api', 'user:1')).limits[0]).toMatchObject({ quota: 50, rate: { source: 'limit' } });
    await service.clearRate('api', { key: KEY });
    expect((await explain('api')).limits[0]).toMatchObject({ quota: 60 });
  });

  it('in the mode of the key', async () => {
    const { service } = app;
    await service.for('api').consume(KEY, 10);
    await service.setMode('api', 'shadow', { key: 'tenant:*', by: 'eva' });
    const shadow = await explain('api');
    expect(shadow).toMatchObject({
      outcome: { verdict: 'allowed' },
      limits: [{ mode: { mode: 'shadow', source: 'pattern', override: { by: 'eva' } }, decision: { allowed: false } }],
    });
    expect(formatExplanation(shadow)).toContain('would refuse (shadow), retry after');
    await service.setMode('api', 'off', { key: KEY });
    const off = await explain('api');
    expect(off).toMatchObject({
      outcome: { verdict: 'allowed' },
      limits: [{ status: 'off', mode: { mode: 'off', source: 'key' }, reason: expect.stringContaining('not checked') }],
    });
    expect(off.limits[0]).not.toHaveProperty('state');
    expect(await explain('api', 'user:1')).toMatchObject({ limits: [{ mode: { mode: 'enforce' } }] });
    expect(await explain('tried')).toMatchObject({ limits: [{ mode: { mode: 'shadow', source: 'configured' } }] });
  });

  it('that is blocked, by hand or by its limit', async () => {
    const { service } = app;
    await service.for('api').block(KEY, '15m');
    const byHand = await explain('api');
    const { blockedForMs, remaining } = byHand.limits[0]!.state!;
    expect(remaining).toBe(0);
    expect(blockedForMs).toBeGreaterThan(840_000);
    expect(byHand.outcome).toMatchObject({ verdict: 'refused', refusedBy: ['api'] });
    // The store is asked for the block last.
    expect(byHand.outcome.retryAfterMs!).toBeGreaterThanOrEqual(blockedForMs!);
    const strict = service.for('strict');
    await strict.consume(KEY);
    expect((await explain('strict')).limits[0]).toMatchObject({ blockForMs: 2 * HOUR, state: { blockedForMs: 0 } });
    await strict.consume(KEY);
    expect((await explain('strict')).limits[0]!.state!.blockedForMs).toBeGreaterThan(2 * HOUR - 60_000);
    expect(formatExplanation(await explain('strict'))).toContain('blocks for 2 h');
  });

  it('that waits its turn, or holds what it has', async () => {
    const { service } = app;
    await service.for('queue').consume(KEY);
    const { outcome, limits } = await explain('queue');
    expect(outcome.verdict).toBe('allowed');
    expect(outcome.delayMs).toBeGreaterThan(HOUR - 60_000);
    expect(limits[0]!.decision!.delayMs).toBe(outcome.delayMs);
    const held = await service.for('jobs').consume(KEY, 2);
    expect(await explain('jobs')).toMatchObject({
      outcome: { verdict: 'refused', refusedBy: ['jobs'] },
      limits: [{ state: { remaining: 0 }, quota: 2 }],
    });
    await held.lease!.release();
    expect(await explain('jobs')).toMatchObject({
      outcome: { verdict: 'allowed' },
      limits: [{ state: { remaining: 2 } }],
    });
  });

  it('of the module, of this instance, and of no name', async () => {
    const { service } = app;
    expect((await explain('hourly')).limits[0]).toMatchObject({
      origin: { level: 'module', location: 'limits[0]' },
      key: { counter: expect.stringContaining('@module:hourly:') },
    });
    await service.for('own').consume(KEY);
    const own = (await explain('own')).limits[0]!;
    expect(own).toMatchObject({ state: { remaining: 4, source: 'memory' } });
    expect(own.key).not.toHaveProperty('counter');
    const definition = { algo: 'gcra', rate: 3, interval: '1h' } as const;
    await service.for(definition).consume(KEY);
    expect(await explain(definition)).toMatchObject({
      subject: { kind: 'limit', limit: 'gcra:3/1h' },
      limits: [{ origin: { level: 'code', location: 'LimiterService.explain' }, state: { remaining: 2 } }],
    });
  });

  it('and nobody is told', async () => {
    const told: unknown[] = [];
    app.service.decisions$.subscribe((event) => told.push(event));
    for (const name of Object.keys(define)) await explain(name);
    expect(told).toEqual([]);
    await app.service.for('api').consume(KEY);
    expect(told).toHaveLength(1);
  });

  it.each<[string, unknown, string]>([
    [
      'nothing',
      undefined,
      'expected { limit, key }, { controller, handler, key }, or the ExecutionContext of a request, received undefined',
    ],
    [
      'what is no question',
      { name: 'api' },
      "expected { limit, key }, { controller, handler, key }, or the ExecutionContext of a request, received { name: 'api' }",
    ],
    ['an unknown name', { limit: 'apii', key: KEY }, "unknown limit 'apii'. Did you mean 'api'?"],
    ['no key', { limit: 'api' }, 'key: missing, expected a string that is not empty'],
    ['an empty key', { limit: 'api', key: '' }, "key: expected a string that is not empty, received ''"],
    ['no limit', { limit: 7, key: KEY }, 'limit: expected the name of a limit, or its definition, received 7'],
    ['a wrong limit', { limit: { algo: 'gcr' }, key: KEY }, "algo: unknown algorithm 'gcr'. Did you mean 'gcra'?"],
    ['a wrong cost', { limit: 'api', key: KEY, cost: -1 }, 'cost: expected a whole number >= 0, received -1'],
    ['an unknown option', { limit: 'api', key: KEY, costs: 1 }, "unknown option 'costs'. Did you mean 'cost'?"],
    ['a method alone', { controller: 'Api' }, 'handler: missing, expected the name of a method'],
    ['no class', { controller: 7, handler: 'get' }, 'controller: expected a class, or its name, received 7'],
    [
      'a wrong identity',
      { controller: 'Api', handler: 'get', key: [7] },
      "key: expected an identity, a list of them, or identities by the names of limits: { api: 'tenant:acme' }, received [ 7 ]",
    ],
    [
      'an unknown class',
      { controller: 'Api', handler: 'get' },
      "controller: expected a class with routes (there is none), received 'Api'",
    ],
  ])('but not %s', async (_, question, message) => {
    const explaining = app.service.explain(question as never);
    await expect(explaining).rejects.toThrow(RateLimitConfigError);
    await expect(explaining).rejects.toThrow(atPlace('LimiterService.explain', message));
  });
});

it('a store of the app that knows no blocks is told as far as it can', async () => {
  class OwnStore implements Store {
    private readonly inner = new MemoryStore();
    check = (checks: readonly Check[]) => this.inner.check(checks);
    reserve = (entry: ReserveEntry) => this.inner.reserve(entry);
    refund = (refunds: readonly Refund[]) => this.inner.refund(refunds);
    penalize = (charge: Charge) => this.inner.penalize(charge);
    block = (counter: Counter, ms: number) => this.inner.block(counter, ms);
    renew = (lease: HeldLease) => this.inner.renew(lease);
    reset = (counters: readonly Counter[]) => this.inner.reset(counters);
    history = (counter: Counter) => this.inner.history(counter);
    close = () => this.inner.close();
  }
  const app = await RatesApp.start({ define, store: new OwnStore() });
  try {
    await app.service.for('strict').consume(KEY);
    const { outcome, limits } = await app.service.explain({ limit: 'strict', key: KEY });
    expect(outcome).toMatchObject({ verdict: 'refused', refusedBy: ['strict'] });
    expect(Object.keys(limits[0]!.state!)).toEqual(['remaining', 'resetAfterMs', 'source']);
  } finally {
    await app.close();
  }
});
