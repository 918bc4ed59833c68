import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext } from '@nestjs/common';
import {
  type LimitDefinition,
  RateLimit,
  RateLimitArgumentError,
  rateLimitOf,
  type RequestDecision,
} from '../../../lib/index.js';
import { AppCalls, type Asking, callOf } from './app-calls.js';
import { Connection } from './connections.js';
import { SharedStore } from '../../support/redis/shared-store.js';

const header = (name: string) => (context: ExecutionContext) =>
  context.switchToHttp().getRequest<Asking>().headers?.[name] as string;
const hundred = { algo: 'fixed-window', rate: 100, interval: '1m' } as const;

const define = {
  slots: { algo: 'concurrency', limit: 10, ttl: '1m', key: 'global', cost: 3 },
  tokens: { ...hundred, key: 'global', cost: 40 },
  org: { ...hundred, key: header('x-org') },
  team: { ...hundred, key: header('x-team') },
  model: { ...hundred, key: header('x-user'), cost: 30, within: 'org' },
  seat: { ...hundred, key: header('x-user'), cost: 20, within: 'team' },
  within: { ...hundred, key: header('x-user'), cost: 5, within: 'places' },
  places: { algo: 'concurrency', limit: 10, ttl: '1m', key: header('x-org') },
} satisfies Record<string, LimitDefinition>;

@Controller()
class Routes {
  @RateLimit('slots')
  slots() {}

  @RateLimit('slots', 'tokens')
  both() {}

  @RateLimit('model', 'seat')
  levels() {}

  @RateLimit('within')
  within() {}

  free() {}
}

const headers = { 'x-org': 'o', 'x-team': 't', 'x-user': 'u' };

describe('the decision of a request', () => {
  let app: AppCalls | undefined;
  let store: SharedStore;
  let responses: Connection[] = [];
  afterEach(async () => {
    // What is held for an open connection is renewed.
    for (const response of responses) response.emit('close');
    responses = [];
    await app?.close();
  });

  const start = async () => {
    store = new SharedStore();
    return (app = await AppCalls.start([Routes], { define, store }));
  };
  const decisionOf = async (handler: keyof Routes): Promise<RequestDecision> => {
    const response = new Connection();
    responses.push(response);
    const context = callOf(Routes, handler, [{ ip: '203.0.113.1', headers }, response]);
    await app?.limiter.beforeGuards(context);
    return rateLimitOf(context)!;
  };

  it('is none where nothing was checked', async () => {
    await start();
    expect(await decisionOf('free')).toBeUndefined();
  });

  it('settles no places that are held, by their name or without', async () => {
    const started = await start();
    const decision = await decisionOf('slots');
    for (const name of [undefined, 'slots']) {
      await expect(decision.settle(1, name)).rejects.toThrow(RateLimitArgumentError);
    }
    const both = await decisionOf('both');
    await both.settle(10);
    expect([await started.left('slots', 'global'), await started.left('tokens', 'global')]).toEqual([4, 90]);
  });

  it('settles the levels that were charged for the limit that is meant, and no others', async () => {
    const started = await start();
    const decision = await decisionOf('levels');
    await decision.settle(10, 'model');
    const left = async () => [
      await started.left('model', 'u', { org: 'o' }),
      await started.left('org', 'o'),
      await started.left('seat', 'u', { team: 't' }),
      await started.left('team', 't'),
    ];
    expect(await left()).toEqual([90, 90, 80, 80]);
    await decision.settle(1);
    expect(await left()).toEqual([90, 90, 99, 99]);
  });

  it('settles no places that are held at a level above', async () => {
    const started = await start();
    const left = async () => [await started.left('within', 'u', { places: 'o' }), await started.left('places', 'o')];
    await (await decisionOf('within')).settle(1);
    expect(await left()).toEqual([99, 5]);
    await (await decisionOf('within')).settle(8);
    expect(await left()).toEqual([91, 0]);
    expect(store.refunds.map(({ limit, units }) => [limit.name, units])).toEqual([['within', 4]]);
  });
});
