import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Logger } from '@nestjs/common';
import { of, throwError } from 'rxjs';
import { type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { begin, count, counts, end, type PhasedApp } from './phased-app.js';
import { Connection } from './connections.js';

@Controller()
class Routes {
  @RateLimit('plain')
  plain() {}

  @RateLimit('priced')
  priced() {}

  @RateLimit('counted')
  counted() {}

  @RateLimit('counted', 'narrow')
  narrowed() {}

  @RateLimit('slots')
  slots() {}
}

const window = { algo: 'fixed-window', rate: 5, interval: '1h', key: 'global' } as const;
const define = {
  plain: window,
  priced: { ...window, cost: 2 },
  counted: { ...window, count: counts },
  narrow: { ...window, rate: 1, phase: 'authenticated' },
  slots: { algo: 'concurrency', limit: 2, ttl: '30s', key: 'global' },
} satisfies Record<string, LimitDefinition>;

describe('a call', () => {
  let app: PhasedApp;
  let connection: Connection;
  beforeEach(async () => {
    ({ app, connection } = await begin(Routes, define));
  });
  afterEach(() => end(app));

  const over = () => ({ response: connection });

  it('goes on at once where there is nothing to wait for', () => {
    for (const name of ['plain', 'priced', 'counted', 'slots']) {
      expect([name, app.call(name, { response: new Connection() }).guard()]).toEqual([name, true]);
    }
  });

  it('listens to its connection only where its end matters', () => {
    app.call('plain', over()).pass();
    app.call('priced', over()).pass();
    expect(connection.listenerCount('close')).toBe(0);
    app.call('counted', over()).pass();
    expect(connection.listenerCount('close')).toBe(1);
  });

  it('is refused where nothing waits for its end, too', async () => {
    for (let request = 0; request < 5; request++) app.call('plain', over()).pass();
    await expect(app.call('plain', over()).held()).rejects.toMatchObject({ name: 'RateLimitExceededException' });
  });

  describe('that does not count', () => {
    it.each([
      ['is given back', false, 5],
      ['is given back once a promise says so', Promise.resolve(false), 5],
      ['stays charged if it does count', true, 4],
      ['stays charged if a promise says that it does count', Promise.resolve(true), 4],
    ])('%s', async (_, said, left) => {
      count.mockReturnValue(said);
      app.call('counted', over()).pass();
      expect(await app.remaining('counted')).toBe(4);
      connection.answer();
      await turn();
      expect(await app.remaining('counted')).toBe(left);
    });

    it.each([
      [
        'throws',
        () => {
          throw new Error('a bug');
        },
      ],
      ['rejects', () => Promise.reject(new Error('a bug'))],
    ])('stays charged if the function that says so %s, which the log tells', async (_, fail) => {
      const log = jest.spyOn(Logger.prototype, 'error').mockReturnValue();
      count.mockImplementation(fail);
      app.call('counted', over()).pass();
      connection.answer();
      await turn();
      expect(await app.remaining('counted')).toBe(4);
      expect(log.mock.calls).toEqual([
        [
          "the function 'count' of limit 'counted' failed, so the request counts",
          expect.stringContaining('Error: a bug'),
        ],
      ]);
    });

    it.each([
      ['undefined', undefined],
      ['null', null],
      ["''", ''],
      ["'no'", 'no'],
      ['{}', {}],
    ])('stays charged if the function returns %s, which the log reports once', async (shown, wrong) => {
      const log = jest.spyOn(Logger.prototype, 'error').mockReturnValue();
      for (const returned of [wrong, Promise.resolve(wrong)]) {
        count.mockReturnValue(returned as never);
        const own = new Connection();
        app.call('counted', { response: own }).pass();
        own.answer();
        await turn();
      }
      expect(await app.remaining('counted')).toBe(3);
      expect(log.mock.calls).toEqual([
        [
          "the function 'count' of limit 'counted' failed, so the request counts",
          expect.stringContaining(`expected true, false or a whole number >= 0, received ${shown}`),
        ],
      ]);
    });

    it.each([
      [
        'an error of its own',
        new TypeError('a bug'),
        'TypeError: a bug',
        expect.stringContaining('TypeError: a bug\n'),
      ],
      ['no error', 'a text', 'a text', undefined],
      ['what has no text', Object.create(null), 'the thrown value has no text', undefined],
    ])('ends no process if a store of the app fails with %s', async (_, reason, told, stack) => {
      const log = jest.spyOn(Logger.prototype, 'error').mockReturnValue();
      jest.spyOn(app.asked, 'refund').mockRejectedValue(reason);
      count.mockReturnValue(false);
      app.call('counted', over()).pass();
      app.call('slots', over()).pass();
      connection.answer();
      await turn();
      const line = [`the store failed: ${told}`, stack];
      expect(log.mock.calls).toEqual([line, line]);
    });
  });

  describe('without a connection', () => {
    const message = { type: 'rpc' } as const;

    it('ends with its handler', async () => {
      count.mockReturnValue(false);
      const call = app.call('counted', message);
      call.pass();
      await turn();
      expect([await app.remaining('counted'), count.mock.calls]).toEqual([4, []]);
      expect(await call.handle(of('done'))).toBe('done');
      await turn();
      expect(await app.remaining('counted')).toBe(5);
      expect(count.mock.calls).toMatchObject([[{ failed: false, aborted: false }]]);
    });

    it('tells the error of its handler', async () => {
      const error = new Error('a bug');
      const call = app.call('counted', message);
      call.pass();
      await expect(call.handle(throwError(() => error))).rejects.toThrow(error);
      await turn();
      expect(count.mock.calls).toMatchObject([[{ failed: true, aborted: false, error }]]);
    });

    it('ends with the error that it is refused with', async () => {
      const [first, second] = [app.call('narrowed', message), app.call('narrowed', message)];
      first.pass();
      await first.handle(of('done'));
      second.pass();
      const refusal: unknown = await second.handle(of('done')).catch((error: unknown) => error);
      await turn();
      expect(count.mock.calls).toMatchObject([[{ failed: false }], [{ failed: true, aborted: false }]]);
      expect(count.mock.calls[1]![0].error).toBe(refusal);
    });
  });
});
