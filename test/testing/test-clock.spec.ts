import { describe, expect, it } from '@jest/globals';
import { MemoryStore, RateLimitArgumentError } from '../../lib/index.js';
import { createTestingStore, TestClock } from '../../lib/testing/index.js';
import { ask, compile } from '../support/limits/stores.js';

const few = compile({ algo: 'fixed-window', rate: 1, interval: '10s' });

describe('TestClock', () => {
  it('begins at the same time every time, and stands still', () => {
    const clock = new TestClock();
    expect(clock.date).toEqual(new Date('2030-01-01T00:00:00.000Z'));
    expect(clock.now()).toBe(Date.UTC(2030, 0) * 1000);
    expect(clock.now()).toBe(new TestClock().now());
  });

  it('begins when it is told to', () => {
    expect(new TestClock('2026-03-29T00:59:59Z').date.toISOString()).toBe('2026-03-29T00:59:59.000Z');
    expect(new TestClock(new Date(5)).now()).toBe(5000);
    expect(new TestClock(0).now()).toBe(0);
  });

  it('is moved by durations, to the microsecond', () => {
    const clock = new TestClock(0);
    clock.advance('10s');
    expect(clock.date).toEqual(new Date(10_000));
    clock.advance(0.0015);
    expect(clock.now()).toBe(10_000_002);
    clock.advance(0);
    expect(clock.now()).toBe(10_000_002);
  });

  it('is set to any time, also an earlier one', () => {
    const clock = new TestClock();
    clock.set('2026-01-01T12:00:00Z');
    expect(clock.date.toISOString()).toBe('2026-01-01T12:00:00.000Z');
  });

  it('refuses what is no duration and no date, and stays where it is', () => {
    const clock = new TestClock(0);
    for (const wrong of ['soon', -1, NaN, '2y', undefined as unknown as string]) {
      expect(() => clock.advance(wrong)).toThrow(RateLimitArgumentError);
    }
    expect(() => clock.set('someday')).toThrow(new RateLimitArgumentError("date: expected a date, received 'someday'"));
    expect(() => new TestClock(NaN)).toThrow(new RateLimitArgumentError('start: expected a date, received NaN'));
    expect(clock.now()).toBe(0);
  });
});

describe('createTestingStore', () => {
  it('counts on the clock that it is given', async () => {
    const clock = new TestClock();
    const store = createTestingStore({ clock });
    expect(store).toBeInstanceOf(MemoryStore);
    expect(await ask(store, few)).toMatchObject({ allowed: true });
    clock.advance('9999ms');
    expect(await ask(store, few)).toMatchObject({ allowed: false, retryAfterMs: 1 });
    clock.advance(1);
    expect(await ask(store, few)).toMatchObject({ allowed: true });
    await store.close();
  });

  it('stands still without one', async () => {
    const store = createTestingStore();
    await ask(store, few);
    expect(await ask(store, few)).toMatchObject({ allowed: false, retryAfterMs: 10_000 });
    await store.close();
  });

  it('forgets everything when it is closed, and can be used again', async () => {
    const store = createTestingStore();
    await ask(store, few);
    await store.close();
    expect(await ask(store, few)).toMatchObject({ allowed: true });
    await store.close();
  });
});
