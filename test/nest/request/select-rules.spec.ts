import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext } from '@nestjs/common';
import { type LimitDefinition, RateLimit, SkipRateLimit } from '../../../lib/index.js';
import { AppCalls, type Asking, callOf, told } from './app-calls.js';

const ten = { algo: 'fixed-window', rate: 10, interval: '1m', key: 'global' } as const;
const named = (name: string, more: Partial<LimitDefinition> = {}) => ({ ...ten, ...more, name }) as LimitDefinition;

let asked = 0;
const choose = (context: ExecutionContext) => {
  asked++;
  const { user } = context.switchToHttp().getRequest<Asking>();
  return user === undefined ? named('guest') : [named('plan', { rate: 50 }), named('last', { phase: 'authenticated' })];
};

@Controller()
class Routes {
  @RateLimit(named('early'), named('late', { phase: 'authenticated' }))
  phases() {}

  @SkipRateLimit()
  free() {}

  @RateLimit(named('flood', { rate: 3 }))
  near() {}
}

@Controller()
@RateLimit(named('plan'))
class Choosing {
  @RateLimit(named('early'), choose)
  chosen() {}
}

describe('the limits that a request is checked against', () => {
  let app: AppCalls | undefined;
  afterEach(async () => {
    asked = 0;
    await app?.close();
  });

  const start = async (limits: LimitDefinition[] = []) => {
    const { limiter } = (app = await AppCalls.start([Routes, Choosing], { limits }));
    /** Asks a handler, and says what the request was told after the guard and in the end. */
    const ask = async (
      handler: keyof Routes | 'chosen',
      { before = {}, found = {} }: { before?: Asking; found?: Asking } = {},
    ) => {
      const request = { ip: '203.0.113.1', headers: {}, ...before };
      const response = {};
      await limiter.beforeRoute(request, response);
      const args = [request, response];
      const context = handler === 'chosen' ? callOf(Choosing, handler, args) : callOf(Routes, handler, args);
      await limiter.beforeGuards(context);
      const guard = told(context);
      Object.assign(request, found);
      await limiter.afterGuards(context);
      return { guard, end: told(context) };
    };
    return { ask };
  };

  it('are those of its phase, each once', async () => {
    const { ask } = await start();
    expect(await ask('phases')).toEqual({
      guard: [['early', 10, 9]],
      end: [
        ['early', 10, 9],
        ['late', 10, 9],
      ],
    });
  });

  it('are chosen in the guard where a user is known by then', async () => {
    const { ask } = await start();
    const { guard, end } = await ask('chosen', { before: { user: { id: 'u' } } });
    expect(guard).toEqual([
      ['plan', 50, 49],
      ['early', 10, 9],
    ]);
    expect(end).toEqual([...guard, ['last', 10, 9]]);
    expect(asked).toBe(1);
  });

  it('are chosen after the guards where these find a user: what was replaced is given back', async () => {
    const { ask } = await start();
    for (const used of [1, 2]) {
      const { guard, end } = await ask('chosen', { found: { user: { id: 'u' } } });
      expect(guard).toEqual([
        // Units of the limit that was replaced the first time were given back.
        ['plan', 10, 9],
        ['early', 10, 10 - used],
      ]);
      expect(end).toEqual([
        ['early', 10, 10 - used],
        ['plan', 50, 50 - used],
        ['last', 10, 10 - used],
      ]);
      expect(asked).toBe(used);
    }
  });

  it('are charged once where the functions choose no other ones', async () => {
    const { ask } = await start();
    const { end } = await ask('chosen');
    expect(end).toEqual([
      ['plan', 10, 9],
      ['early', 10, 9],
      ['guest', 10, 9],
    ]);
  });

  it('are those that a middleware has not checked, which holds on any route', async () => {
    const { ask } = await start([named('flood', { phase: 'middleware' }), named('guarded')]);
    expect(await ask('phases')).toMatchObject({
      guard: [
        ['flood', 10, 9],
        ['guarded', 10, 9],
        ['early', 10, 9],
      ],
    });
    expect(await ask('free')).toEqual({ guard: [], end: [] });
    expect(await ask('near')).toMatchObject({
      guard: [
        ['flood', 3, 2],
        ['guarded', 10, 8],
      ],
    });
  });
});
