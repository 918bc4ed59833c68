import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { isStream, watched } from '../../../lib/nest/request/subscription.js';
import { Gate } from '../../support/time/gate.js';

const failure = new Error('failed');

/** A stream by hand, with no more than what is given. */
function streamOf(iterator: AsyncIterator<unknown>): AsyncIterable<unknown> {
  return { [Symbol.asyncIterator]: () => iterator };
}

/** A watched stream, and what it has reported. */
function watch(iterator: AsyncIterator<unknown>) {
  const reports: unknown[] = [];
  const stream = watched(streamOf(iterator), (failed, error) => reports.push({ failed, error }));
  return { stream, reports };
}

async function* events() {
  yield 1;
  yield 2;
  return 3;
}

const endless: AsyncIterator<unknown> = { next: () => new Promise(() => {}) };
const ended = { failed: false, error: undefined };
const failed = { failed: true, error: failure };

describe('a stream', () => {
  it('is what can be read with for await', () => {
    expect([events(), streamOf(endless)].map(isStream)).toEqual([true, true]);
  });

  it.each([[undefined], [null], ['text'], [7], [{}], [[1, 2]], [() => {}]])('is not %p', (value) => {
    expect(isStream(value)).toBe(false);
  });
});

describe('a watched stream', () => {
  it('hands on what comes, and reports its end once it has come', async () => {
    const { stream, reports } = watch(events());
    expect(await stream.next()).toEqual({ done: false, value: 1 });
    expect(await stream.next()).toEqual({ done: false, value: 2 });
    expect(reports).toEqual([]);
    expect(await stream.next()).toEqual({ done: true, value: 3 });
    expect(reports).toEqual([ended]);
  });

  it('is read with for await, too', async () => {
    const { stream, reports } = watch(events());
    const values: unknown[] = [];
    for await (const value of stream) values.push(value);
    expect([values, reports]).toEqual([[1, 2], [ended]]);
  });

  it('reports and hands on the error that it ends with', async () => {
    const { stream, reports } = watch({ next: () => Promise.reject(failure) });
    await expect(stream.next()).rejects.toBe(failure);
    expect(reports).toEqual([failed]);
  });

  it('reports that its reader leaves at once, while it waits for an event that never comes', async () => {
    const gate = new Gate<IteratorResult<unknown>>();
    const { stream, reports } = watch({ ...endless, return: () => gate.passed });
    void stream.next();
    const left = stream.return?.('last');
    expect(reports).toEqual([ended]);
    gate.open({ done: true, value: 'closed' });
    expect(await left).toEqual({ done: true, value: 'closed' });
  });

  it('tells the stream under it what its reader leaves with', async () => {
    const told: unknown[] = [];
    const { stream } = watch({
      ...endless,
      return: async (value) => {
        told.push(value);
        return { done: true, value };
      },
    });
    await stream.return?.('last');
    expect(told).toEqual(['last']);
  });

  it('is done when its reader leaves, if the stream under it does not care', async () => {
    const { stream, reports } = watch(endless);
    expect(await stream.return?.('last')).toEqual({ done: true, value: 'last' });
    expect(reports).toEqual([ended]);
  });

  it('reports at once what its reader throws into it, which the stream may answer', async () => {
    const told: unknown[] = [];
    const { stream, reports } = watch({
      ...endless,
      throw: async (error: unknown) => {
        told.push(error);
        return { done: false, value: 'caught' };
      },
    });
    const answer = stream.throw?.(failure);
    expect(reports).toEqual([failed]);
    expect(await answer).toEqual({ done: false, value: 'caught' });
    expect(told).toEqual([failure]);
  });

  it('fails with what its reader throws into it, if the stream under it does not care', async () => {
    const { stream, reports } = watch(endless);
    await expect(stream.throw?.(failure)).rejects.toBe(failure);
    expect(reports).toEqual([failed]);
  });

  it('asks the stream under it for nothing before it is asked', async () => {
    let asked = 0;
    const { stream, reports } = watch({
      next: async () => {
        asked++;
        return { done: true, value: undefined };
      },
    });
    await turn();
    expect([asked, reports]).toEqual([0, []]);
    await stream.next();
    expect([asked, reports]).toEqual([1, [ended]]);
  });
});
