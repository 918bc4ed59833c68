import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { ConsoleClock } from '../../lib/console/telemetry/console-redis.js';
import { ensureBuilt } from '../support/processes/built.js';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import {
  ConsoleApp,
  type ConsoleAppOptions,
  type Incidents,
  type LostIncident,
  type RefusedIncident,
  type Tick,
} from './console-app.js';
import { hashOf } from '../support/limits/hashed.js';

const url = process.env['TEST_REDIS_URL'] as string;
const LIMIT = { algo: 'gcra', rate: 10, interval: '1h' } as const;

const consume = async (app: ConsoleApp, key: string, times: number, limit = 'things') => {
  for (let call = 0; call < times; call++) await app.service.for(limit).consume(key);
};
const incidents = async (app: ConsoleApp) => (await app.console.incidents.now()).incidents;

describe('what hurts', () => {
  let prefix: string;
  let redis: Redis;
  const apps: ConsoleApp[] = [];

  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.quit());
  beforeEach(() => {
    prefix = freshPrefix();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all(apps.splice(0).map((app) => app.close()));
  });

  const start = async (options: ConsoleAppOptions = {}) => {
    const app = await ConsoleApp.start({
      ...options,
      limits: { redis: url, prefix, ...options.limits },
    });
    apps.push(app);
    return app;
  };
  const key = (name: string) => `${prefix}:{console}:${name}`;

  it('is found without anybody having looked before, over all instances, with the keys behind it', async () => {
    jest.spyOn(ConsoleClock.prototype, 'now').mockReturnValue(Date.now());
    const define = { things: LIMIT, quiet: LIMIT };
    const [first, second, viewer] = await Promise.all([0, 1, 2].map(() => start({ limits: { define } })));
    await consume(first!, 'anna', 60);
    await consume(second!, 'anna', 30);
    await consume(second!, 'bert', 25);
    await consume(second!, 'carl', 5, 'quiet');
    await Promise.all([first, second].map((app) => app!.console.recorder.flush()));
    const answer = await viewer!.read<Incidents>('incidents');
    expect(answer.coverage).toEqual({
      instances: expect.arrayContaining(apps.map((app) => app.console.recorder.self.id)),
      ended: 0,
      unread: [],
    });
    expect(answer.windowMs).toBeGreaterThanOrEqual(60_000);
    expect(answer.windowMs).toBeLessThan(76_000);
    expect(answer.incidents).toEqual([
      {
        id: 'refused things',
        kind: 'refused',
        severity: 'critical',
        limit: 'things',
        since: expect.any(Number),
        sinceEarlier: false,
        allowed: 20,
        refused: 95,
        share: 95 / 115,
        perSecond: expect.closeTo(95 / 68, 0),
        keys: [
          { id: hashOf('anna'), count: 80, error: 0 },
          { id: hashOf('bert'), count: 15, error: 0 },
        ],
        keysSince: expect.any(Number),
      },
    ]);
    const { since, keysSince } = answer.incidents[0] as RefusedIncident;
    expect(answer.at - since).toBeLessThan(60_000);
    expect(keysSince).toBeLessThanOrEqual(answer.at);
  });

  it('is in each tick of the live data', async () => {
    const app = await start();
    await consume(app, 'anna', 30);
    await app.console.recorder.flush();
    const tick: Tick = await app.console.incidents.tick();
    expect(tick.incidents).toMatchObject([{ kind: 'refused', limit: 'things', refused: 20 }]);
    expect(tick).toMatchObject({ instances: [{ self: true }], lost: [], coverage: { unread: [] } });
  });

  it('is shown without Redis, too', async () => {
    const app = await ConsoleApp.start();
    apps.push(app);
    await consume(app, 'anna', 30);
    app.console.recorder.fold();
    expect(await incidents(app)).toMatchObject([{ kind: 'refused', keys: [{ id: hashOf('anna'), count: 20 }] }]);
  });

  describe('to processes', () => {
    const worker = bundledWorker('console-worker.mjs');
    const children: ChildProcess[] = [];
    beforeAll(ensureBuilt);
    afterEach(async () => {
      for (const child of children.splice(0)) {
        child.kill('SIGKILL');
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      }
    });

    const run = async () => {
      const input = { url, prefix, define: { things: LIMIT }, name: 'things', key: 'anna', times: 40 };
      const child = fork(await worker(), [JSON.stringify(input)], { execArgv: [] });
      children.push(child);
      await once(child, 'message');
      return child;
    };

    it('is that one is killed: it leaves the running ones at once, what it counted stays, and the loss is shown', async () => {
      const app = await start();
      const child = await run();
      await until(async () => (await app.console.overviews.tick()).instances.length === 2);
      await until(async () => (await app.overview()).totals['things']?.refused === 30);
      child.kill('SIGKILL');
      await once(child, 'exit');
      const silences: number[] = [];
      await until(async () => {
        const { at, instances } = await app.console.overviews.tick();
        const killed = instances.find(({ self }) => !self);
        if (killed !== undefined) silences.push(at - killed.lastSeenAt);
        return killed === undefined;
      });
      // None of them shows it any more that begins so long after its last report.
      expect(Math.max(...silences, 0)).toBeLessThan(5000);
      const { totals, lost, coverage } = await app.overview();
      expect(totals['things']).toMatchObject({ allowed: 10, refused: 30 });
      expect(lost).toMatchObject([{ pid: child.pid, self: false }]);
      expect(coverage).toEqual({ instances: [app.console.recorder.self.id], ended: 1, unread: [] });
      const found = (await incidents(app)).find(({ kind }) => kind === 'lost') as LostIncident;
      expect(found).toMatchObject({ kind: 'lost', instance: { pid: child.pid }, since: lost![0]!.lastSeenAt });
    });

    it('is nothing if one ends by itself', async () => {
      const app = await start();
      const child = await run();
      await until(async () => (await app.console.overviews.tick()).instances.length === 2);
      child.send('end');
      await once(child, 'exit');
      const { instances, lost, totals, coverage } = await app.overview();
      expect([instances.length, lost, coverage.ended]).toEqual([1, [], 1]);
      expect(totals['things']).toMatchObject({ allowed: 10, refused: 30 });
      expect((await incidents(app)).map(({ kind }) => kind)).toEqual(['refused']);
    });
  });

  it('is not that an instance starts whose clock is wrong', async () => {
    const app = await start();
    await app.console.recorder.flush();
    const realNow = Date.now;
    const wrong = jest.spyOn(Date, 'now').mockImplementation(() => realNow() - 300_000);
    try {
      const other = await start();
      wrong.mockRestore();
      await consume(other, 'anna', 12);
      await other.console.recorder.flush();
      expect((await app.overview()).lost).toEqual([]);
      await until(async () => (await app.console.overviews.tick()).instances.length === 2);
      expect((await app.overview()).lost).toEqual([]);
    } finally {
      wrong.mockRestore();
    }
  });

  it('reads instances of the release before, and is read by them', async () => {
    const app = await start();
    await consume(app, 'anna', 30);
    await app.console.recorder.flush();
    // What that release stores.
    const now = Date.now();
    const step = Math.floor(now / 15_000) * 15_000;
    const published = { version: '1.0.0', host: 'old', pid: 7, startedAt: now, clockOffsetMs: 0, circuit: 'closed' };
    await redis.zadd(key('seen'), now, 'old');
    await redis.set(key('instance-old'), JSON.stringify({ id: 'old', lastSeenAt: now, ...published }), 'EX', 60);
    await redis.hset(key('counts-15-old'), step, '[[["things",5,70,0,0,0,0],["(others)",3,0,0,0,0,0]],[75,0,0,0],[]]');
    await redis.set(key('top-old'), '[["things",1000,[["other",70,0]],0,[["other",5,0]],0]]');
    const { totals, unknown, instances } = await app.overview('1h');
    expect(totals['things']).toMatchObject({ allowed: 15, refused: 90 });
    expect(totals['(others)']).toMatchObject({ allowed: 3 });
    expect(unknown).toEqual(expect.not.arrayContaining(['things']));
    expect(unknown).toHaveLength(1);
    expect(instances.map(({ host }) => host)).toContain('old');
    expect(await incidents(app)).toMatchObject([{ refused: 90, keys: [{ id: 'other', count: 70 }, { count: 20 }] }]);
    // What that release reads.
    const { id } = app.console.recorder.self;
    expect(await redis.zscore(key('seen'), id)).not.toBeNull();
    const [text] = Object.values(await redis.hgetall(key(`counts-15-${id}`)));
    const [limits, checks, latencies] = JSON.parse(text!) as [unknown[], number[], number[]];
    expect([limits, checks, latencies.length % 2]).toEqual([
      [['things', 10, 20, 0, 1]],
      [30, 0, expect.any(Number), 0],
      0,
    ]);
    const about = JSON.parse((await redis.get(key(`instance-${id}`)))!) as Record<string, unknown>;
    const { lastSeenAt, circuit } = about;
    expect([Number.isFinite(lastSeenAt), circuit]).toEqual([true, 'closed']);
  });
});
