import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MemoryStore, type RedisClient, RedisStore, type Store } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { InstanceChannel } from '../../../lib/storage/redis/instance-channel.js';
import { FallbackStore } from '../../../lib/storage/stores/layers/fallback.store.js';
import { RefusalCacheStore } from '../../../lib/storage/stores/layers/refusal-cache.store.js';
import { takingAhead } from '../../support/limits/prefetching.js';
import { PrefetchStore } from '../../../lib/storage/features/prefetch/prefetch.store.js';

const TIMEOUT_MS = 250;
const identity = 'user:1';
const options = { algo: 'fixed-window', rate: 100, interval: '1h' } as const;
const remembered = new CompiledLimit(options, { location: 'test', name: 'remembered', remembersRefusals: true });
const plain = new CompiledLimit(options, { location: 'test', name: 'plain' });
const prefetched = new CompiledLimit(options, {
  location: 'test',
  name: 'prefetched',
  features: takingAhead(10, 1_000_000),
});

const entryOf = (limit: CompiledLimit) => ({ limit, identity, cost: 1 });

const never = () => new Promise<never>(() => undefined);

/** A connection to a server that takes everything and says nothing. */
const hung = { status: 'ready', evalsha: never, publish: never, del: never, disconnect: never } as never as RedisClient;

describe('of a server that says nothing', () => {
  let store: Store;

  beforeEach(() => {
    jest.useFakeTimers();
    const channel = new InstanceChannel(hung, 'channel', TIMEOUT_MS);
    const remote = new RedisStore(hung, { timeoutMs: TIMEOUT_MS });
    const safe = new FallbackStore(remote, new MemoryStore());
    jest.spyOn(channel, 'listen').mockReturnValue(undefined);
    store = new PrefetchStore(new RefusalCacheStore(safe, channel), channel);
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it.each<[string, (store: Store) => Promise<unknown>]>([
    ['a check', (asked) => asked.check([{ entries: [entryOf(plain)] }])],
    ['a check of a prefetched limit', (asked) => asked.check([{ entries: [entryOf(prefetched)] }])],
    [
      'a check of a prefetched limit and another one',
      (asked) => asked.check([{ entries: [entryOf(prefetched), entryOf(plain)] }]),
    ],
    ['a look', (asked) => asked.check([{ entries: [entryOf(prefetched), entryOf(plain)], peek: true }])],
    ['a reservation', (asked) => asked.reserve({ ...entryOf(plain), maxWaitMs: 0 })],
    ['a refund', (asked) => asked.refund([{ limit: remembered, identity, units: 1 }])],
    ['a refund to a prefetched limit', (asked) => asked.refund([{ limit: prefetched, identity, units: 1 }])],
    ['a penalty', (asked) => asked.penalize({ limit: remembered, identity, units: 1 })],
    ['a block', (asked) => asked.block({ limit: remembered, identity }, 1000)],
    ['a block of a prefetched limit', (asked) => asked.block({ limit: prefetched, identity }, 1000)],
    [
      'a reset',
      (asked) =>
        asked.reset([
          { limit: remembered, identity },
          { limit: prefetched, identity },
        ]),
    ],
    ['a renewal', (asked) => asked.renew({ limit: plain, identity, units: 1, ticket: 1 })],
  ])('%s waits for no more than one deadline', async (_, call) => {
    let done = false;
    const calling = call(store)
      .catch(() => undefined)
      .then(() => (done = true));
    // The calls of a turn are sent at its end.
    await turn();
    await jest.advanceTimersByTimeAsync(TIMEOUT_MS - 10);
    expect(done).toBe(false);
    for (let ms = 0; ms < 20; ms++) {
      await jest.advanceTimersByTimeAsync(1);
      // A late call reads its sockets first, in the next turn.
      await turn();
    }
    expect(done).toBe(true);
    await calling;
  });
});
