import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { TestingModule } from '@nestjs/testing';
import { type Limiter, type LimiterService, MemoryStore } from '../../../lib/index.js';
import type { OutboundLimiter } from '../../../lib/integrations/outbound/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { startLimiters, Upstream } from '../../integrations/outbound/upstream.js';
import { ask, chargeOf, ManualClock } from '../../support/limits/stores.js';

describe('three slots, two of them for those who are not critical', () => {
  let app: TestingModule;
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let slots: Limiter;

  beforeEach(async () => {
    const slot = { algo: 'adaptive', scope: 'instance', min: 1, max: 3, initial: 3 } as const;
    ({ app, limiters, outbound } = await startLimiters({
      define: { slots: slot, ranked: { ...slot, priority: 'critical' } },
    }));
    slots = limiters.for('slots');
  });
  afterEach(() => app.close());

  it('are explained by the priority of who asks', async () => {
    const ranked = limiters.for('ranked');
    await Promise.all([ranked.consume('db'), ranked.consume('db')]);
    expect(await ranked.peek('db')).toMatchObject({ allowed: true });
    const { limits } = await limiters.explain({ limit: 'ranked', key: 'db' });
    expect(limits[0]!.decision).toMatchObject({ allowed: true });
  });

  it('are asked for by fetch as the limit says', async () => {
    const upstream = await Upstream.start((_, response) => void response.writeHead(200).write('some'));
    const call = outbound.fetch('ranked', { key: 'db', timeout: 0 });
    const responses = [await call(upstream.url), await call(upstream.url), await call(upstream.url)];
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    await expect(call(upstream.url)).rejects.toThrow("limit 'ranked'");
    await upstream.close();
  });

  it('are not waited for behind those who may take less', async () => {
    const held = await slots.consume('db', { cost: 2, priority: 'critical' });
    const waiting = slots.acquire('db');
    await slots.peek('db');
    const critical = await slots.acquire('db', { priority: 'critical', timeout: 0 });
    expect(critical.allowed).toBe(true);
    await critical.lease!.release();
    await held.lease!.release();
    expect((await waiting).allowed).toBe(true);
  });
});

it('one that is alone is let in, however late the event loop is', async () => {
  const clock = new ManualClock();
  const load = { eventLoopDelay: 0, cpu: 0 };
  const store = new MemoryStore({ clock: clock.now, load });
  const limit = new CompiledLimit({ algo: 'adaptive' }, { location: 'test', instance: true });
  const identity = 'ip:203.0.113.7';
  for (let request = 0; request < 100; request++) {
    const decision = await ask(store, limit);
    clock.advanceMs(10);
    await store.refund([{ ...chargeOf({ limit, identity, cost: 1 }, decision), end: 'completed' }]);
  }
  load.eventLoopDelay = 1_000_000;
  expect(await ask(store, limit)).toMatchObject({ allowed: true });
  expect(await ask(store, limit)).toMatchObject({ allowed: false });
  await store.close();
});
