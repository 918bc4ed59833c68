import { afterEach, describe, expect, it } from '@jest/globals';
import { type INestApplication, VersioningType } from '@nestjs/common';
import { LimiterService } from '../../lib/index.js';
import { readInstance } from '../../lib/console/telemetry/reporter.js';
import { until } from '../support/time/until.js';
import {
  ConsoleApp,
  type Incidents,
  type ConsoleAppOptions,
  type Lookup,
  type Overview,
  type Session,
  THINGS,
} from './console-app.js';

const prefixed = (app: INestApplication): void => {
  app.setGlobalPrefix('api');
  app.enableVersioning({ type: VersioningType.URI });
};

describe.each([
  ['Express', false],
  ['Fastify', true],
])('the routes of the console on %s', (_, fastify) => {
  let app: ConsoleApp;
  const start = async (options: ConsoleAppOptions = {}) => (app = await ConsoleApp.start({ fastify, ...options }));

  afterEach(() => app.close());

  it('serves the page, its files and its data', async () => {
    await start();
    const page = await app.get('ops/limits');
    const html = await page.text();
    expect(page.status).toBe(200);
    expect(html).toContain('<meta name="console-base" content="limits/">');
    const links = [...html.matchAll(/(?:src|href)="(limits\/[^"]+)"/g)].map(([, link]) => link!);
    expect(links).toHaveLength(2);
    for (const link of links) {
      const file = await app.get(`ops/${link}`, { 'accept-encoding': 'gzip, br' });
      expect([file.status, file.headers.get('content-encoding')]).toEqual([200, 'br']);
      const plain = await app.get(`ops/${link}`, { 'accept-encoding': 'gzip' });
      expect([plain.headers.get('content-encoding'), await plain.text()]).toEqual([null, await file.text()]);
    }
    const session = await app.read<Session>('session');
    expect(session).toMatchObject({ storage: 'memory', identities: 'hashed', topKeys: 'always', writable: true });
    expect(session.limits.map(({ name }) => name).toSorted()).toEqual([
      expect.stringMatching(/^sliding-window:3\/1h/),
      'things',
    ]);
  });

  it('says of each answer with counts how old it is, and over which instances', async () => {
    app = await ConsoleApp.start({ fastify });
    const { instance } = await app.read<Session>('session');
    for (const path of ['overview', 'overview?range=30d', 'incidents', 'top?limit=things']) {
      const since = Date.now();
      const { at, coverage } = await app.read<Incidents>(path);
      expect(at).toBeGreaterThanOrEqual(since - 1000);
      expect(at).toBeLessThanOrEqual(Date.now() + 1000);
      expect(coverage).toEqual({ instances: [instance], ended: 0, unread: [] });
    }
  });

  it('looks units that tenants share up as a whole, and says so', async () => {
    const gpu = { algo: 'gcra', rate: 10, interval: '1h', key: 'global', share: { by: 'header:x-tenant' } } as const;
    await start({ limits: { define: { gpu, things: THINGS } } });
    const limit = app.service.for('gpu');
    for (const share of ['a', 'b']) await limit.consume('global', { share, cost: 3 });
    const answer = await app.post('lookup', { identity: 'global' }, { 'x-user': 'ops' });
    const { limits } = (await answer.json()) as Lookup;
    expect(limits.find(({ limit: name }) => name === 'gpu')).toMatchObject({
      used: 6,
      remaining: 4,
      sharedBy: 'header:x-tenant',
      explanation: expect.stringContaining('what is left is that of all tenants together'),
    });
  });

  it('says what it has not', async () => {
    await start();
    const response = await app.get('ops/limits/assets/console.0.js');
    const type = response.headers.get('content-type');
    expect([response.status, type]).toEqual([404, expect.stringContaining('application/problem+json')]);
  });

  it('stands under a global prefix, of no version', async () => {
    await start({ setUp: prefixed });
    const page = await app.get('api/ops/limits');
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('src="limits/assets/')]);
    expect((await app.get('api/ops/limits/api/session')).status).toBe(200);
    expect((await app.get('ops/limits')).status).toBe(404);
  });

  it('shows what was allowed and refused, and looks identities up', async () => {
    await start();
    for (let request = 0; request < 12; request++) await app.get('things', { 'x-client': 'anna' });
    await until(async () => {
      const { totals } = await app.overview();
      return totals['things']?.refused === 2;
    });
    const { totals } = await app.read<Overview>('overview');
    expect(totals['things']).toMatchObject({ allowed: 10, refused: 2, shadowRefused: 0, near: 1 });
    const found = await (await app.post('lookup', { identity: 'anna' }, { 'x-user': 'ops' })).json();
    const { limits } = found as Lookup;
    expect(limits.find(({ limit }) => limit === 'things')).toMatchObject({ quota: 10, used: 10, blockedUntil: null });
  });

  it('shows what an adaptive limit lets in now, not what it may at most', async () => {
    const overload = { algo: 'adaptive', scope: 'instance', initial: 7, max: 500, key: 'global' } as const;
    await start({ limits: { define: { things: THINGS, overload, idle: overload } } });
    const { lease } = await app.nest.get(LimiterService).for('overload').consume('global', 2);
    const now = { overload: { limit: 7, inFlight: 2 } };
    const [self] = (await app.read<Overview>('overview')).instances;
    expect(self).toMatchObject({ adaptive: now });
    expect(readInstance(JSON.stringify(self))?.adaptive).toEqual(now);
    const found = await (await app.post('lookup', { identity: 'global' }, { 'x-user': 'ops' })).json();
    const { limits } = found as Lookup;
    expect(limits.find(({ limit }) => limit === 'overload')).toMatchObject({ quota: 7, used: 2 });
    await lease!.release();
    const [after] = (await app.read<Overview>('overview')).instances;
    expect(after!.adaptive).toEqual({ overload: { limit: 7, inFlight: 0 } });
  });
});

it('reads nothing of adaptive limits that makes no sense', () => {
  const told = { id: 'a', version: '1', host: 'h', pid: 1, startedAt: 1, clockOffsetMs: 0, lastSeenAt: 1 };
  const read = (adaptive: unknown) => readInstance(JSON.stringify({ ...told, circuit: 'none', adaptive }))?.adaptive;
  expect(read('all')).toBeUndefined();
  const some = { one: { limit: 1, inFlight: 0 }, none: null, text: { limit: '1', inFlight: 0 }, half: { limit: 1 } };
  expect(read(some)).toEqual({ one: { limit: 1, inFlight: 0 } });
});
