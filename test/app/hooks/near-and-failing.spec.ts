import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type DecisionHooksOptions,
  type DecisionObserver,
  type LimitDefinition,
  LimiterService,
  type ObservedDecision,
  RateLimit,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { createTestingStore } from '../../../lib/testing/index.js';
import { HttpApp } from '../../e2e/http-app.js';
import { ManualClock } from '../../support/limits/stores.js';

const modules: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  for (const module of modules.splice(0)) await module.close();
});

const clock = new ManualClock();

async function start(options: RateLimitModuleOptions): Promise<LimiterService> {
  const store = createTestingStore({ clock });
  const module: TestingModule = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ store, ...options })],
  }).compile();
  modules.push(module, store);
  await module.init();
  return module.get(LimiterService);
}

const ten = { name: 'ten', algo: 'fixed-window', rate: 10, interval: '1m' } as const;

describe('onNear', () => {
  it('is called once when a counter reaches the share from below, and in the next window again', async () => {
    const near: string[] = [];
    const limiters = await start({ onNear: ({ key, decision }) => near.push(`${key} ${decision.remaining}`) });
    const limiter = limiters.for(ten);
    for (let call = 0; call < 12; call++) await limiter.consume('a');
    await limiter.consume('b', 8);
    expect(near).toEqual(['a 2', 'b 2']);
    clock.advance(60_000);
    for (let call = 0; call < 12; call++) await limiter.consume('a');
    expect(near).toEqual(['a 2', 'b 2', 'a 2']);
  });

  it("keeps to the limit's share, and to the limit's hook besides that of the module", async () => {
    const near: string[] = [];
    const limiters = await start({ onNear: ({ limit }) => near.push(`module ${limit}`) });
    const limiter = limiters.for({ ...ten, nearLimit: 0.5, onNear: ({ limit }) => near.push(limit) });
    await limiter.consume('a', 4);
    expect(near).toEqual([]);
    await limiter.consume('a');
    expect(near).toEqual(['ten', 'module ten']);
  });

  it('is not called again for a bucket that hovers around the share', async () => {
    let near = 0;
    const limiters = await start({ onNear: () => near++ });
    const limiter = limiters.for({ name: 'bucket', algo: 'token-bucket', rate: 10, interval: '10s' });
    await limiter.consume('a', 8);
    for (let call = 0; call < 20; call++) {
      clock.advance(1000);
      await limiter.consume('a');
    }
    expect(near).toBe(1);
    clock.advance(10_000);
    await limiter.consume('a', 8);
    expect(near).toBe(2);
  });

  it('is called of limits in shadow mode and of candidates, and says which', async () => {
    const near: string[] = [];
    const limiters = await start({ onNear: ({ kind }) => near.push(kind) });
    const limiter = limiters.for({ ...ten, mode: 'shadow', candidate: { rate: 20 } });
    for (let call = 0; call < 16; call++) await limiter.consume('a');
    expect(near).toEqual(['shadow', 'candidate']);
  });
});

describe('a hook of code', () => {
  it('gets what is consumed, acquired, reserved and checked, with the key and without a request', async () => {
    const observed: ObservedDecision[] = [];
    const limiters = await start({ onDecision: (decided) => observed.push(decided) });
    const limiter = limiters.for(ten);
    await limiter.consume('user:1');
    await limiter.acquire('user:2');
    await limiters.check([{ limit: ten, key: 'user:3' }]);
    limiters.for({ ...ten, scope: 'instance' }).consumeSync('user:4');
    await limiter.peek('user:5');
    await limiters.for({ name: 'bucket', algo: 'gcra', rate: 10, interval: '10s' }).reserve('user:6');
    expect(observed.map(({ key }) => key)).toEqual(['user:1', 'user:2', 'user:3', 'user:4', 'user:6']);
    for (const each of observed) {
      expect(each).toMatchObject({ context: undefined, request: undefined, route: undefined, class: undefined });
    }
  });

  it('cannot change a decision', async () => {
    const limiters = await start({ onDecision: ({ decision }) => Object.assign(decision, { allowed: false }) });
    expect(await limiters.for(ten).consume('a')).toMatchObject({ allowed: true });
  });
});

describe('a hook that calls limits', () => {
  const strikes = { ...ten, name: 'strikes', rate: 1 } as const;

  it('is called for their decisions as well', async () => {
    const refused: string[] = [];
    const limiters: LimiterService = await start({
      define: { strikes },
      onRefused: ({ limit, key }) => {
        refused.push(limit);
        return limit === 'strikes' ? undefined : limiters.for('strikes').consume(key);
      },
    });
    for (let call = 0; call < 12; call++) await limiters.for(ten).consume('a');
    expect(refused).toEqual(['ten', 'ten', 'strikes']);
  });

  it('does not call itself without end, with a line in the log that says so once', async () => {
    const errors = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    let called = 0;
    const limiters: LimiterService = await start({
      define: { strikes },
      onRefused: ({ key }) => {
        called++;
        return limiters.for('strikes').consume(key);
      },
    });
    await limiters.for('strikes').consume('a');
    for (let call = 1; call <= 2; call++) {
      expect(await limiters.for('strikes').consume('a')).toMatchObject({ allowed: false });
      expect(called).toBe(5 * call);
    }
    expect(errors).toHaveBeenCalledTimes(1);
    expect(errors).toHaveBeenCalledWith(
      "the hook 'onRefused' of RateLimitModule was left out of a decision that hooks caused",
      expect.stringContaining('call hooks again'),
    );
  });
});

describe('a hook that fails', () => {
  const failing: Record<string, DecisionHooksOptions['onDecision']> = {
    throws: () => {
      throw new Error('out of paper');
    },
    rejects: () => Promise.reject(new Error('out of paper')),
    'gives a thenable that throws': () => ({
      // eslint-disable-next-line unicorn/no-thenable
      then: () => {
        throw new Error('out of paper');
      },
    }),
    'is a class whose instances throw': class implements DecisionObserver {
      observe(): never {
        throw new Error('out of paper');
      }
    },
  };

  it.each(Object.keys(failing))('changes nothing and is logged once if it %s', async (how) => {
    const errors = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const limiters = await start({ onDecision: failing[how]! });
    const limiter = limiters.for({ ...ten, onRefused: failing[how]! });
    for (let call = 0; call < 12; call++) await limiter.consume('a');
    await new Promise((resolve) => setImmediate(resolve));
    expect(errors.mock.calls).toEqual([
      [
        "the hook 'onDecision' of RateLimitModule failed; requests are not affected",
        expect.stringContaining('out of paper'),
      ],
      [
        "the hook 'onRefused' of limit 'ten' failed; requests are not affected",
        expect.stringContaining('out of paper'),
      ],
    ]);
  });

  it('keeps no request waiting if it never ends, nor another hook from its call', async () => {
    @Controller()
    class Routes {
      @Get()
      @RateLimit({ ...ten, onDecision: () => new Promise(() => undefined) })
      get() {}
    }
    let called = 0;
    const app = await HttpApp.start('express', { controllers: [Routes], limits: { onDecision: () => called++ } });
    modules.push(app);
    expect(await app.statuses(2, '/')).toEqual([200, 200]);
    expect(called).toBe(2);
  });
});

describe('a wrong hook', () => {
  const wants = 'a function, or an injectable class that implements DecisionObserver';

  it.each(['onDecision', 'onRefused', 'onNear'] as const)('%s is refused at start-up', async (option) => {
    await expect(start({ [option]: 'log' })).rejects.toThrow(
      new RateLimitConfigError(`RateLimitModule.${option}: expected ${wants}, received 'log'`),
    );
    const define = { ten: { ...ten, [option]: { log: true } } } as unknown as Record<string, LimitDefinition>;
    await expect(start({ define })).rejects.toThrow(`${option}: expected ${wants}, received { log: true }`);
  });

  it('of a class without the method is refused, too', async () => {
    class Idle {}
    await expect(start({ onNear: Idle as never })).rejects.toThrow(`expected ${wants}`);
  });
});
