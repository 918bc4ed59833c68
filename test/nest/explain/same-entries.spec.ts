import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get } from '@nestjs/common';
import fc from 'fast-check';
import { type LimitDefinition, type LimitSpec, MemoryStore, RateLimit } from '../../../lib/index.js';
import type { Check, ReserveEntry } from '../../../lib/testing/store/index.js';
import { AppCalls, type Asking, callOf } from '../request/app-calls.js';
import { expectEqual, propertyRuns } from '../../support/limits/property-runs.js';

/** What the store was asked of each limit, sorted by the limits' names. */
type Asked = readonly unknown[];

/** Keeps what it is asked. */
class NotingStore extends MemoryStore {
  private asked: Asked[] = [];

  override check(checks: readonly Check[]) {
    // An explanation looks at one limit at a time, beside others of which it may borrow.
    for (const { entries, peek } of checks) this.asked.push(...entries.slice(0, peek ? 1 : undefined).map(noted));
    return super.check(checks);
  }

  override reserve(entry: ReserveEntry) {
    this.asked.push(noted(entry));
    return super.reserve(entry);
  }

  take(): Asked[] {
    const taken = this.asked;
    this.asked = [];
    return taken.toSorted((one, other) => String(one[0]).localeCompare(String(other[0])));
  }
}

function noted({ limit, identity, cost, priority = 'default' }: Check['entries'][number]): Asked {
  const { name, quota, options, metBy } = limit;
  const tenant = metBy['tenant'] as { readonly id: string } | undefined;
  return [name, identity, cost, priority, quota, 'anchor' in options ? options.anchor : undefined, tenant?.id];
}

type Headers = Record<string, string>;
const header = (context: ExecutionContext, name: string) => context.switchToHttp().getRequest<Asking>().headers?.[name];
const yes = (context: ExecutionContext, name: string) => header(context, name) === 'yes';
const either = (one: string, other: string) => fc.constantFrom(one, other);
const keyOf = (name: string) => (context: ExecutionContext) => header(context, name);

const many = { algo: 'fixed-window', rate: 1_000, interval: '1h' } as const;
const NAMES = ['root', 'middle', 'leaf', 'beside'] as const;
const PARENTS = { root: undefined, middle: 'root', leaf: 'middle', beside: 'root' } as const;
type Name = (typeof NAMES)[number];
type Options = Partial<Omit<LimitDefinition, 'name' | 'algo'>>;

const sometimes = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 });
const awaited = <T>(value: T) => fc.constantFrom<T | Promise<T>>(value, Promise.resolve(value));
const fixedPart = {
  cost: sometimes(fc.integer({ min: 0, max: 5 })),
  reserveFor: sometimes(fc.constant({ critical: 0.5 })),
  priority: sometimes(fc.constantFrom('critical', 'sheddable')),
};

/** An option is left out if it is `undefined`. */
const given = <T extends object>(options: T) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options;
const definitions = (levels: Record<Name, Options>) =>
  Object.fromEntries(
    NAMES.map((name) => [name, { ...many, key: keyOf(name), ...given({ within: PARENTS[name] }), ...levels[name] }]),
  ) as Record<string, LimitDefinition>;
const ofEach = <T>(value: fc.Arbitrary<T>) =>
  fc.record(Object.fromEntries(NAMES.map((name) => [name, value])) as Record<Name, fc.Arbitrary<T>>);

let app: AppCalls | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

/** Starts an app with a route of these limits, and tells what its store is asked by what is done there. */
async function start(define: Record<string, LimitDefinition>, onRoute: readonly LimitSpec[]) {
  const store = new NotingStore();
  const [first, ...others] = onRoute as [LimitSpec, ...LimitSpec[]];
  class Routes {
    get() {}
  }
  const method = Object.getOwnPropertyDescriptor(Routes.prototype, 'get')!;
  RateLimit(first, ...others)(Routes.prototype, 'get', method);
  Get()(Routes.prototype, 'get', method);
  Controller()(Routes);
  const calls = await AppCalls.start([Routes], { define, store });
  app = calls;
  const asking = (headers: Headers) => callOf(Routes, 'get', [{ ip: '203.0.113.1', headers }, {}]);
  const asked = async (act: () => unknown) => {
    store.take();
    await act();
    return store.take();
  };
  return {
    service: calls.service,
    explained: (headers: Headers) => calls.service.explain(asking(headers)),
    Routes,
    asked,
    ofGuard: (headers: Headers) =>
      asked(async () => {
        const context = asking(headers);
        await calls.limiter.beforeGuards(context);
        await calls.limiter.afterGuards(context);
      }),
    ofExplain: (headers: Headers) => asked(() => calls.service.explain(asking(headers))),
  };
}

describe('what limits are asked', () => {
  it('is the same in the guard and in its explanation', async () => {
    const level = fc.record({
      ...fixedPart,
      cost: sometimes(fc.oneof(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 5 }).chain(awaited))).map(
        (cost) => (typeof cost === 'object' ? () => cost : cost),
      ),
      key: fc.constantFrom(undefined, undefined, 'global' as const, 'header:x-key' as const),
      onMissingKey: fc.constantFrom(undefined, 'skip' as const),
      skip: fc.constantFrom(
        undefined,
        (context: ExecutionContext) => yes(context, 'skip'),
        async (context: ExecutionContext) => yes(context, 'free'),
      ),
      phase: fc.constantFrom(undefined, undefined, undefined, 'authenticated' as const),
      priority: fc.constantFrom(
        undefined,
        'critical' as const,
        () => 'sheddable' as const,
        async () => 'critical' as const,
      ),
    });
    const alone: Record<string, LimitDefinition> = {
      shared: {
        ...many,
        algo: 'sliding-window',
        key: 'global',
        share: { by: keyOf('tenant'), weight: { a: 2, b: 1 } },
      },
      anchored: {
        algo: 'budget',
        limit: 1_000,
        period: 'month',
        key: 'ip',
        anchor: (context) => header(context, 'date') ?? null,
      },
      number: { ...many, key: () => 42n },
    };
    const headers = fc.record(
      {
        ...Object.fromEntries([...NAMES, 'x-key', 'tenant'].map((name) => [name, either('a', 'b')])),
        skip: either('yes', 'no'),
        free: either('yes', 'no'),
        date: either('2030-01-15', '2030-01-20'),
      },
      { requiredKeys: [] },
    ) as fc.Arbitrary<Headers>;
    const routes = fc.subarray([...NAMES, ...Object.keys(alone)], { minLength: 1 });
    const property = fc.asyncProperty(
      ofEach(level),
      routes,
      fc.array(headers, { minLength: 1, maxLength: 4 }),
      async (levels, onRoute, requests) => {
        const options = Object.fromEntries(NAMES.map((name) => [name, given(levels[name])])) as Record<Name, Options>;
        const { ofGuard, ofExplain } = await start({ ...definitions(options), ...alone }, onRoute);
        for (const request of requests) {
          const explained = await ofExplain(request);
          expectEqual(await ofGuard(request), explained);
        }
        await app?.close();
      },
    );
    await fc.assert(property, { numRuns: propertyRuns(50) });
  });

  it('is the same from code, in the guard and in explanations of requests, limits and routes', async () => {
    const keys = { root: 'r', middle: 'm', leaf: 'l', beside: 'b' };
    const named = fc.constantFrom<Name>('leaf', 'middle', 'beside', 'root');
    const property = fc.asyncProperty(ofEach(fc.record(fixedPart)), named, async (levels, name) => {
      const options = Object.fromEntries(NAMES.map((each) => [each, given(levels[each])])) as Record<Name, Options>;
      const { service, Routes, asked, ofGuard, ofExplain } = await start(definitions(options), [name]);
      const above: Record<string, string> = {};
      for (let parent = PARENTS[name] as Name | undefined; parent !== undefined; parent = PARENTS[parent]) {
        above[parent] = keys[parent];
      }
      const within = name === 'root' ? {} : { within: above };
      const guarded = await ofGuard(keys);
      const key = keys[name];
      const limiter = service.for(name);
      expectEqual(await asked(() => limiter.consume(key, within)), guarded);
      expectEqual(await asked(() => service.check([{ limit: name, key, ...within }])), guarded);
      expectEqual(await asked(() => limiter.acquire(key, within)), guarded);
      expectEqual(await ofExplain(keys), guarded);
      expectEqual(await asked(() => service.explain({ limit: name, key, ...within })), guarded);
      const ofRoute = { controller: Routes, handler: 'get', key: { ...above, [name]: key } };
      expectEqual(await asked(() => service.explain(ofRoute)), guarded);
      await app?.close();
    });
    await fc.assert(property, { numRuns: propertyRuns(40) });
  });

  it.each([
    [{ share: 'a' }, "limit 'leaf' has no option 'share'. Remove 'share' from the call"],
    [{ anchor: '2030-01-15' }, "limit 'leaf'"],
  ])('is refused from code alike, by one limit and by several: %j', async (options, message) => {
    const { service } = await start(definitions({ root: {}, middle: {}, leaf: {}, beside: {} }), ['leaf']);
    const within = { middle: 'm', root: 'r' };
    await expect(service.for('leaf').consume('l', { within, ...options })).rejects.toThrow(message);
    await expect(service.check([{ limit: 'leaf', key: 'l', within, ...options }])).rejects.toThrow(message);
    expect(await service.for('leaf').peek('l', { within })).toMatchObject({ remaining: 1_000 });
  });

  it('fails in the guard and in its explanation where what a function gave does not go with the rest', async () => {
    const { ofGuard, explained } = await start({}, [{ name: 'same', ...many }, () => ({ name: 'same', ...many })]);
    await expect(ofGuard({})).rejects.toThrow("'same'");
    const { outcome, functions } = await explained({});
    expect(outcome).toMatchObject({ verdict: 'fails', reason: expect.stringContaining("'same'") });
    expect(functions).toMatchObject([{ asked: true, gave: ['same'] }]);
  });

  it('depends on the request of a route whose windows begin where a function says', async () => {
    const anchored = { algo: 'budget', limit: 9, period: 'month', key: 'global', anchor: () => null } as const;
    const { service, Routes } = await start({ anchored }, ['anchored']);
    const { limits } = await service.explain({ controller: Routes, handler: 'get' });
    expect(limits).toMatchObject([
      { status: 'depends on the request', reason: "its 'anchor' is a function, whose result depends on the request" },
    ]);
  });
});
