import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { RateLimitModuleOptions } from '../../../lib/index.js';
import { readSettings } from '../../../lib/app/config/settings.js';
import { SlowReaders } from '../../../lib/nest/request/slow-readers.js';
import { answerOf } from '../../../lib/app/transports/answer.js';

/** The part of a response of Node that shows how its client takes it. */
class Response extends EventEmitter {
  private readonly handle = { bytesWritten: 0, writeQueueSize: 0 };
  socket: object = { _handle: this.handle };
  writableEnded = false;
  writableNeedDrain = false;
  readonly destroy = jest.fn();

  /** The client takes so many bytes. */
  take(bytes: number): void {
    this.handle.bytesWritten += bytes;
  }
}

/** Lets seconds pass. */
const pass = (seconds: number) => jest.advanceTimersByTime(1000 * seconds);

describe('clients that read slowly', () => {
  let readers: SlowReaders;
  let response: Response;
  beforeEach(() => {
    jest.useFakeTimers();
    response = new Response();
  });
  afterEach(() => readers.onModuleDestroy());

  function follow({ isServed = false, isEnforced = true } = {}, sendTimeout?: RateLimitModuleOptions['sendTimeout']) {
    readers = new SlowReaders(readSettings(sendTimeout === undefined ? {} : { sendTimeout }));
    const request = { answer: answerOf(response), isServed, isEnforced, release: jest.fn(), releaseLoad: jest.fn() };
    readers.follow(request);
    return request;
  }

  it('of an answer that is complete hold what the request holds for thirty seconds, whatever they read', () => {
    const request = follow({ isServed: true });
    response.writableEnded = true;
    for (let second = 1; second < 30; second++) {
      response.take(1e6);
      pass(1);
    }
    expect(request.release).not.toHaveBeenCalled();
    pass(1);
    expect(request.release).toHaveBeenCalledTimes(1);
    expect(response.destroy).not.toHaveBeenCalled();
    pass(60);
    expect(request.release).toHaveBeenCalledTimes(1);
  });

  it('hold it until the handler is done, which has answered before', () => {
    const request = follow();
    response.writableEnded = true;
    pass(60);
    expect(request.release).not.toHaveBeenCalled();
    request.isServed = true;
    pass(1);
    expect(request.release).toHaveBeenCalledTimes(1);
  });

  it('are cut off when an answer that is being written has waited for thirty seconds', () => {
    const request = follow();
    response.writableNeedDrain = true;
    pass(29);
    expect(response.destroy).not.toHaveBeenCalled();
    pass(1);
    expect(response.destroy).toHaveBeenCalled();
    // That is over once nothing of it is at work any more.
    expect(request.release).not.toHaveBeenCalled();
  });

  it('are cut off by all waits of an answer together, not by what the app takes', () => {
    follow();
    for (let wait = 0; wait < 29; wait++) {
      response.writableNeedDrain = true;
      pass(1);
      response.writableNeedDrain = false;
      pass(60);
    }
    expect(response.destroy).not.toHaveBeenCalled();
    response.writableNeedDrain = true;
    pass(1);
    expect(response.destroy).toHaveBeenCalled();
  });

  it.each([
    [16_384, 0],
    [8192, 1],
  ])('are cut off if they read less than 16 KiB a second: %d bytes', (bytes, cuts) => {
    follow();
    response.writableNeedDrain = true;
    for (let half = 0; half < 122; half++) {
      if (half % 2 === 0) response.take(bytes);
      pass(0.5);
    }
    expect(response.destroy.mock.calls.length > 0).toBe(cuts > 0);
  });

  it('are cut off by what is drained where bytes are not known', () => {
    response.socket = {};
    follow();
    response.writableNeedDrain = true;
    for (let second = 0; second < 60; second++) {
      response.emit('drain');
      pass(1);
    }
    expect(response.destroy).not.toHaveBeenCalled();
    pass(31);
    expect(response.destroy).toHaveBeenCalled();
  });

  it('are no load after a second', () => {
    const request = follow();
    response.writableNeedDrain = true;
    pass(0.5);
    expect(request.releaseLoad).not.toHaveBeenCalled();
    pass(0.5);
    expect(request.releaseLoad).toHaveBeenCalled();
  });

  it('are not cut off by a shadow', () => {
    const request = follow({ isEnforced: false });
    response.writableNeedDrain = true;
    pass(30);
    expect(request.release).toHaveBeenCalledTimes(1);
    expect(response.destroy).not.toHaveBeenCalled();
  });

  it('may take their time with sendTimeout: false', () => {
    const request = follow({ isServed: true }, false);
    response.writableEnded = true;
    pass(3600);
    expect(request.release).not.toHaveBeenCalled();
  });

  it('have their own time, however short', () => {
    const request = follow({ isServed: true }, 8);
    response.writableEnded = true;
    jest.advanceTimersByTime(8);
    expect(request.release).toHaveBeenCalledTimes(1);
  });

  it('cost no timer once nobody reads', () => {
    const request = follow();
    expect(jest.getTimerCount()).toBe(1);
    readers.forget(request);
    pass(1);
    expect(jest.getTimerCount()).toBe(0);
    readers.follow(request);
    expect(jest.getTimerCount()).toBe(1);
    readers.onModuleDestroy();
    expect(jest.getTimerCount()).toBe(0);
  });
});
