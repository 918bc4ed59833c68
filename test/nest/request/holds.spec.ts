import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type DelayEnd, DelayedRequests } from '../../../lib/nest/request/delayed-requests.js';
import { Connection } from './connections.js';

/** Timers that keep the process alive. */
const keeping = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

describe('a request that is held', () => {
  let holds: DelayedRequests;
  let ends: DelayEnd[];
  beforeEach(() => {
    jest.useFakeTimers();
    holds = new DelayedRequests();
    ends = [];
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  function hold(delayMs: number, connection?: Connection): void {
    void holds.delay(delayMs, connection).then((end) => ends.push(end));
  }

  it.each([
    ['with a connection', new Connection()],
    ['without one', undefined],
  ])('goes on once its time is over, %s', async (_, connection) => {
    hold(1000, connection);
    await jest.advanceTimersByTimeAsync(999);
    expect(ends).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(ends).toEqual(['over']);
  });

  it('ends with its connection, and leaves no timer', async () => {
    const connection = new Connection();
    hold(1000, connection);
    expect(jest.getTimerCount()).toBe(1);
    connection.leave();
    await jest.advanceTimersByTimeAsync(0);
    expect(ends).toEqual(['closed']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is not held for a client that has left', async () => {
    const connection = new Connection();
    connection.leave();
    hold(1000, connection);
    expect(jest.getTimerCount()).toBe(0);
    await jest.advanceTimersByTimeAsync(0);
    expect(ends).toEqual(['closed']);
  });

  it('ends as the app shuts down, and leaves no timer', async () => {
    hold(1000, new Connection());
    hold(2000);
    holds.onModuleDestroy();
    await jest.advanceTimersByTimeAsync(0);
    expect(ends).toEqual(['shut down', 'shut down']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is not held once the app has shut down', async () => {
    holds.onModuleDestroy();
    hold(1000, new Connection());
    hold(2000);
    await jest.advanceTimersByTimeAsync(0);
    expect(ends).toEqual(['shut down', 'shut down']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('closes the connection with its answer as the app shuts down', () => {
    const connection = new Connection();
    hold(1000, connection);
    expect(connection.shouldKeepAlive).toBe(true);
    holds.onModuleDestroy();
    expect(connection.shouldKeepAlive).toBe(false);
  });

  it('says nothing of a connection that knows of no later requests, as of HTTP/2', () => {
    const connection = new Connection();
    delete connection.shouldKeepAlive;
    hold(1000, connection);
    holds.onModuleDestroy();
    expect(connection.shouldKeepAlive).toBeUndefined();
  });

  it.each([
    ['whose time is over', () => jest.advanceTimersByTimeAsync(1000)],
    [
      'whose client has left',
      (connection: Connection) => {
        connection.leave();
        return jest.advanceTimersByTimeAsync(0);
      },
    ],
  ])('is forgotten %s: its connection stays as it is when the app shuts down', async (_, end) => {
    const connection = new Connection();
    hold(1000, connection);
    await end(connection);
    holds.onModuleDestroy();
    expect(connection.shouldKeepAlive).toBe(true);
    expect(ends).toHaveLength(1);
  });

  it('keeps the process alive by its socket alone', async () => {
    jest.useRealTimers();
    const before = keeping();
    const held = holds.delay(60_000, undefined);
    expect(keeping()).toBe(before);
    holds.onModuleDestroy();
    expect(await held).toBe('shut down');
  });
});
