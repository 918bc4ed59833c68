import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller } from '@nestjs/common';
import { of, throwError } from 'rxjs';
import { type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { begin, count, counts, end, type PhasedApp } from './phased-app.js';
import { Connection } from './connections.js';

@Controller()
class Routes {
  @RateLimit('slots')
  slots() {}

  @RateLimit('counted-slots')
  countedSlots() {}

  @RateLimit('listed-slots')
  listedSlots() {}

  @RateLimit('overload', 'narrow')
  overload() {}
}

const slots = { algo: 'concurrency', limit: 2, ttl: '30s', key: 'global' } as const;
const define = {
  slots,
  'counted-slots': { ...slots, count: counts },
  'listed-slots': { ...slots, count: counts },
  narrow: { algo: 'fixed-window', rate: 1, interval: '1h', key: 'global', phase: 'authenticated' },
  overload: { algo: 'adaptive', scope: 'instance', min: 10, max: 10, initial: 10, key: 'global' },
} satisfies Record<string, LimitDefinition>;

const lists = { allow: [{ identity: 'global', limit: 'listed-slots' }] };

describe('a call that holds a slot', () => {
  let app: PhasedApp;
  let connection: Connection;
  beforeEach(async () => {
    ({ app, connection } = await begin(Routes, define, { lists }));
  });
  afterEach(() => end(app));

  const over = () => ({ response: connection });

  it('frees it once its response has ended', async () => {
    app.call('slots', over()).pass();
    expect(await app.remaining('slots')).toBe(1);
    connection.answer();
    await turn();
    expect(await app.remaining('slots')).toBe(2);
  });

  it('keeps it beyond its ttl as long as its connection is open, also before its handler runs', async () => {
    jest.useFakeTimers();
    app.call('slots', over()).pass();
    await pass(60);
    expect(await app.remaining('slots')).toBe(1);
    connection.answer();
    await jest.advanceTimersByTimeAsync(0);
    expect(await app.remaining('slots')).toBe(2);
    const renew = jest.spyOn(app.asked, 'renew');
    await pass(60);
    expect(renew).not.toHaveBeenCalled();
  });

  it('frees it after an error that cannot tell its status', async () => {
    const error = { getStatus: 503 };
    const call = app.call('slots', { type: 'rpc' });
    call.pass();
    expect(await app.remaining('slots')).toBe(1);
    await expect(call.handle(throwError(() => error))).rejects.toBe(error);
    await turn();
    expect(await app.remaining('slots')).toBe(2);
  });

  it('keeps it without a connection for its ttl, as nothing tells whether its handler will run', async () => {
    jest.useFakeTimers();
    app.call('slots').pass();
    await pass(25);
    expect(await app.remaining('slots')).toBe(1);
    await pass(5);
    expect(await app.remaining('slots')).toBe(2);
  });

  /** Lets seconds pass for the store, and for timers. */
  async function pass(seconds: number) {
    for (let second = 0; second < seconds; second += 5) {
      app.clock.advance('5s');
      await jest.advanceTimersByTimeAsync(5000);
    }
  }

  it.each([
    ['completed', () => connection.answer()],
    ['dropped', () => connection.answer(503)],
    ['aborted', () => connection.leave()],
  ])('tells the store that it was %s', async (end, leave) => {
    const refund = jest.spyOn(app.asked, 'refund');
    app.call('overload', over()).pass();
    leave();
    await turn();
    expect(refund.mock.calls).toMatchObject([[[{ limit: { name: 'overload' }, end }]]]);
  });

  it('holds no load once its answer is complete, however slowly that is read', async () => {
    const refund = jest.spyOn(app.asked, 'refund');
    app.call('overload', over()).pass();
    connection.end();
    await turn();
    expect(refund.mock.calls).toMatchObject([[[{ limit: { name: 'overload' }, end: 'completed' }]]]);
    connection.leave();
    await turn();
    expect(refund).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['waited for its client', () => connection.emit('drain') && connection.answer()],
    ['was left in its midst', () => connection.leave({ headersSent: true })],
  ])('learns nothing of an answer that %s', async (_, leave) => {
    const refund = jest.spyOn(app.asked, 'refund');
    app.call('overload', over()).pass();
    leave();
    await turn();
    expect(refund.mock.calls).toMatchObject([[[{ limit: { name: 'overload' }, end: 'ignored' }]]]);
  });

  it('says nothing of load if a limit refuses it later, whatever it is answered', async () => {
    const first = app.call('overload', { response: new Connection() });
    first.pass();
    await first.handle(of('done'));
    const refund = jest.spyOn(app.asked, 'refund');
    const call = app.call('overload', over());
    call.pass();
    await expect(call.handle(of('done'))).rejects.toMatchObject({ name: 'RateLimitExceededException' });
    connection.answer(503);
    await turn();
    expect(refund.mock.calls).toMatchObject([[[{ limit: { name: 'overload' }, end: 'ignored' }]]]);
  });

  it('has none where a list lets it pass, and gives nothing back', async () => {
    const refund = jest.spyOn(app.asked, 'refund');
    count.mockReturnValue(false);
    app.call('listedSlots', over()).pass();
    connection.answer();
    await turn();
    expect(refund).not.toHaveBeenCalled();
  });

  it.each([true, false])('gives it back once, whether it counts or not: %s', async (counted) => {
    const refund = jest.spyOn(app.asked, 'refund');
    count.mockReturnValue(counted);
    app.call('countedSlots', over()).pass();
    connection.answer();
    await turn();
    expect(refund).toHaveBeenCalledTimes(1);
    expect(await app.remaining('counted-slots')).toBe(2);
  });
});
