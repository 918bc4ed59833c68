import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, HttpException } from '@nestjs/common';
import { type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { outcomeOf } from '../../support/limits/waiting.js';
import { begin, counts, end, type PhasedApp } from './phased-app.js';
import { Connection } from './connections.js';

@Controller()
class Routes {
  @RateLimit('shaped')
  shaped() {}

  @RateLimit('shaped', 'slower')
  shapedTwice() {}

  @RateLimit('watching')
  watched() {}
}

const shape = { algo: 'leaky-bucket', rate: 1, interval: '10s', queue: 4, key: 'global' } as const;
const define = {
  shaped: { ...shape, count: counts },
  slower: { ...shape, interval: '20s' },
  watching: { ...shape, mode: 'shadow' },
} satisfies Record<string, LimitDefinition>;

describe('a call that comes too soon', () => {
  let app: PhasedApp;
  let connection: Connection;
  beforeEach(async () => {
    ({ app, connection } = await begin(Routes, define));
  });
  afterEach(() => end(app));

  const over = () => ({ response: connection });

  it('goes on once its turn has come', async () => {
    jest.useFakeTimers();
    app.call('shaped', over()).pass();
    const held = outcomeOf(app.call('shaped', over()).held());
    await jest.advanceTimersByTimeAsync(9999);
    expect(held).toEqual({});
    await jest.advanceTimersByTimeAsync(1);
    expect(held.value).toBe(true);
    expect(await app.remaining('shaped')).toBe(3);
  });

  it('waits for the slowest of its limits', async () => {
    jest.useFakeTimers();
    app.call('shapedTwice', over()).pass();
    const held = outcomeOf(app.call('shapedTwice', over()).held());
    await jest.advanceTimersByTimeAsync(19_999);
    expect(held).toEqual({});
    await jest.advanceTimersByTimeAsync(1);
    expect(held.value).toBe(true);
  });

  it('goes on at once, through a limit that only watches', async () => {
    for (let request = 0; request < 3; request++) app.call('watched', over()).pass();
    expect(await app.remaining('watching')).toBe(2);
  });

  it('is refused as its client leaves, and gives its turn back', async () => {
    app.call('shaped', { response: new Connection() }).pass();
    const held = app.call('shaped', over()).held();
    expect(await app.remaining('shaped')).toBe(3);
    connection.leave();
    const error: unknown = await held.catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(HttpException);
    expect(error).toMatchObject({ status: 499, message: 'Client Closed Request' });
    expect(await app.remaining('shaped')).toBe(4);
  });

  it('is refused as the app shuts down, and gives its turn back', async () => {
    app.call('shaped', { response: new Connection() }).pass();
    const held = app.call('shaped', over()).held();
    await app.module.close();
    await expect(held).rejects.toMatchObject({ status: 503, message: 'The server is shutting down' });
    expect(await app.remaining('shaped')).toBe(4);
  });

  it('keeps its turn if it counts, and is no lease of it', async () => {
    app.call('shaped', over()).pass();
    const refund = jest.spyOn(app.asked, 'refund');
    connection.answer();
    await turn();
    expect(refund).not.toHaveBeenCalled();
    expect(await app.remaining('shaped')).toBe(4);
  });
});
