import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { type RedisServer, startRedis } from '../support/redis/redis-servers.js';
import { until } from '../support/time/until.js';
import {
  type Changes,
  ConsoleApp,
  type ListItems,
  type Lookup,
  type Overview,
  type Problem,
  type Rates,
  THINGS,
  type TopKeys,
} from './console-app.js';

const NOT_READ = /^Redis does not answer, /;

describe('a console whose Redis is silent', () => {
  let server: RedisServer;
  let app: ConsoleApp;

  const post = async (path: string, body: object): Promise<[number, Partial<Problem>]> => {
    const response = await app.post(path, { reason: 'a test', limit: 'things', identity: 'anna', ...body });
    return [response.status, (await response.json()) as Partial<Problem>];
  };

  beforeAll(async () => {
    jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    server = await startRedis();
    app = await ConsoleApp.start({
      limits: {
        redis: server.url,
        timeout: '500ms',
        define: {
          things: THINGS,
          queue: { algo: 'leaky-bucket', rate: 10, interval: '1h', queue: 10 },
          open: { ...THINGS, onStoreError: 'allow' },
          shadow: { ...THINGS, onStoreError: 'deny', mode: 'shadow' },
        },
      },
    });
    for (const name of ['things', 'queue', 'open', 'shadow']) await app.service.for(name).consume('anna', 6);
    await app.console.recorder.flush();
    server.pause();
  });
  afterAll(async () => {
    server.resume();
    await app.close();
    await server.stop();
    jest.restoreAllMocks();
  });

  it.each(['things', 'queue', 'open', 'shadow'])(
    'confirms no refund and no penalty of %s that did not reach it',
    async (limit) => {
      for (const path of ['keys/refund', 'keys/penalize']) {
        const [status, { detail }] = await post(path, { limit, units: 2 });
        expect([path, status]).toEqual([path, 503]);
        expect(detail).toMatch(/./);
      }
    },
  );

  it.each([
    ['keys/block', { duration: '1h' }],
    ['keys/unblock', {}],
    ['keys/reset', {}],
    ['keys/override', { patch: { rate: 3 } }],
    ['keys/clear-override', {}],
    ['lists', { list: 'deny', limit: undefined }],
    ['lists/remove', { limit: undefined }],
    ['rates/set', { patch: { rate: 3 }, identity: undefined }],
    ['modes/set', { mode: 'off', identity: undefined }],
    ['rates/clear', { identity: undefined }],
    ['candidates/set', { patch: { rate: 3 }, identity: undefined }],
    ['candidates/clear', { identity: undefined }],
    ['rollback', { version: 0, limit: undefined, identity: undefined }],
  ])('confirms nothing of %s', async (path, body) => {
    const [status, problem] = await post(path, body);
    expect([status, problem.detail]).toEqual([503, expect.stringMatching(/./)]);
  });

  it('says of each list that it could not be read', async () => {
    expect((await app.read<Changes>('changes')).problem).toMatch(/./);
    expect((await app.read<ListItems>('lists')).problem).toMatch(NOT_READ);
    expect((await app.read<Rates>('rates')).problem).toMatch(NOT_READ);
    expect((await app.read<TopKeys>('top?limit=things')).problem).toMatch(NOT_READ);
    expect((await app.read<Overview>('overview')).problem).toMatch(NOT_READ);
    const lookup = (await (await app.post('lookup', { identity: 'anna' })).json()) as Lookup;
    for (const state of lookup.limits) expect(state).toMatchObject({ used: null, unread: expect.any(String) });
  });

  it('reads all again once Redis answers', async () => {
    server.resume();
    await until(async () => (await app.console.lists.page(0)).problem === undefined);
    await until(async () => (await app.console.rates.all({})).problem === undefined);
    await until(async () => (await app.console.top.of('things')).problem === undefined);
    await until(async () => (await app.console.changes.read(undefined)).problem === undefined);
  });
});
