import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type CallHandler, type INestApplication, Logger } from '@nestjs/common';
import { map } from 'rxjs';
import {
  type Changes,
  CONSOLE_LIMIT,
  ConsoleApp,
  type ConsoleAppOptions,
  type Lookup,
  PAGE,
  type Problem,
  type Session,
  type TopKeys,
} from './console-app.js';
import { hashOf } from '../support/limits/hashed.js';

const HOSTILE = '<img src=x onerror=alert(1)>"\'&\u2028';
const BLOCK = { limit: 'things', identity: 'anna', duration: '1h', reason: 'a test' };
const READS = ['session', 'overview', 'live', 'top?limit=things', 'lists', 'rates', 'changes'];
const CHANGES = [
  'keys/block',
  'keys/unblock',
  'keys/reset',
  'keys/refund',
  'keys/penalize',
  'keys/override',
  'keys/clear-override',
  'lists',
  'lists/remove',
  'rates/set',
  'rates/clear',
  'modes/set',
  'modes/clear',
  'candidates/set',
  'candidates/enforce',
  'candidates/clear',
  'rollback',
];

describe.each([
  ['Express', false],
  ['Fastify', true],
])('the security of the console on %s', (_, fastify) => {
  let app: ConsoleApp;

  beforeAll(async () => {
    app = await ConsoleApp.start({ fastify, console: { actor: () => 'admin@example.com' } });
  });
  afterAll(() => app.close());

  const blocked = async () => !(await app.service.for('things').peek('anna')).allowed;

  it('lets nobody in whom its guards do not', async () => {
    for (const path of ['', ...READS.map((read) => `/api/${read}`)]) {
      expect((await fetch(`${app.url}/ops/limits${path}`)).status).toBe(403);
    }
    const lookup = { method: 'POST', headers: PAGE, body: '{"identity":"anna"}' };
    expect((await fetch(`${app.url}/ops/limits/api/lookup`, lookup)).status).toBe(403);
  });

  it('lets nobody change anything whom the guards of changes do not', async () => {
    for (const path of CHANGES) {
      const response = await app.post(path, BLOCK, { 'x-user': 'ops' });
      expect([path, response.status]).toEqual([path, 403]);
    }
    expect((await app.get('ops/limits/api/write')).status).toBe(403);
    expect((await app.get('ops/limits/api/write', { 'x-user': 'admin' })).status).toBe(204);
    expect(await blocked()).toBe(false);
  });

  it.each([
    ['another site, as new browsers say it', { 'sec-fetch-site': 'cross-site' }],
    ['a neighbour', { 'sec-fetch-site': 'same-site' }],
    ['another site, as old browsers say it', { origin: 'https://evil.example' }],
    ['a page of no origin', { origin: 'null' }],
    ['a form: no header', { 'x-rate-limit-console': '' }],
    ['another site that a browser calls none', { 'sec-fetch-site': 'none', origin: 'https://evil.example' }],
  ])('takes no change from %s', async (__, headers) => {
    for (const path of ['keys/block', 'lookup']) {
      const response = await app.post(path, path === 'lookup' ? { identity: 'anna' } : BLOCK, headers);
      expect(response.status).toBe(403);
      expect(response.headers.get('content-type')).toContain('application/problem+json');
    }
    expect(await blocked()).toBe(false);
  });

  it('takes no change that is not JSON', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp']) {
      const response = await app.post('keys/block', BLOCK, { 'content-type': type });
      // Fastify itself refuses types that it has no parser for.
      expect([400, 415]).toContain(response.status);
    }
    expect((await app.post('keys/block', '{"limit":')).status).toBe(400);
    expect((await app.post('keys/block', '[1]')).status).toBe(400);
    expect(await blocked()).toBe(false);
  });

  it('tells pages of other sites nothing', async () => {
    for (const read of READS) {
      const crossSite = await app.get(`ops/limits/api/${read}`, { 'sec-fetch-site': 'cross-site' });
      const otherOrigin = await app.get(`ops/limits/api/${read}`, { origin: 'https://evil.example' });
      expect([crossSite.status, otherOrigin.status]).toEqual([403, 403]);
    }
    const own = await app.get('ops/limits/api/session', { origin: app.url, 'sec-fetch-site': 'same-origin' });
    expect(own.status).toBe(200);
  });

  it('says of each answer what browsers may do with it', async () => {
    const page = await app.get('ops/limits');
    const html = await page.text();
    const policy = page.headers.get('content-security-policy')!;
    const nonce = /script-src 'nonce-([^']+)'/.exec(policy)![1]!;
    expect(html).toContain(`nonce="${nonce}"`);
    expect(policy).toMatch(/^default-src 'none'; .*base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/);
    expect(policy).not.toContain('unsafe');
    const other = (await app.get('ops/limits')).headers.get('content-security-policy');
    expect(other).not.toBe(policy);
    for (const response of [page, await app.get('ops/limits/api/session'), await app.post('keys/block', {})]) {
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'x-frame-options': 'DENY',
        'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
      });
    }
  });

  it('takes hostile identities as text', async () => {
    const limiter = app.service.for('things');
    await app.read<TopKeys>('top?limit=things');
    for (let call = 0; call < 12; call++) await limiter.consume(HOSTILE);
    const found = (await (await app.post('lookup', { identity: HOSTILE })).json()) as Lookup;
    expect(found).toMatchObject({
      id: hashOf(HOSTILE),
      limits: expect.arrayContaining([expect.objectContaining({ used: 10 })]),
    });
    await app.change('keys/block', { ...BLOCK, identity: HOSTILE, reason: HOSTILE.slice(0, 20) });
    await app.change('lists', { list: 'deny', identity: HOSTILE.replaceAll('*', '') });
    const top = await app.read<TopKeys>('top?limit=things');
    expect(top.refused[0]).toEqual({ id: hashOf(HOSTILE), count: 2, error: 0 });
    for (const path of ['top?limit=things', 'lists', 'overview']) {
      expect(JSON.stringify(await app.read<object>(path))).not.toContain('onerror');
    }
    const { changes } = await app.read<Changes>('changes');
    expect(changes.map(({ key }) => key)).toEqual([hashOf(HOSTILE), hashOf(HOSTILE)]);
  });

  it('takes fields of every name and kind for what they are', async () => {
    for (const body of [
      '{"__proto__":{"reason":"x"},"limit":"things","identity":"anna","duration":"1h","reason":"x"}',
      '{"constructor":{"prototype":{"polluted":1}},"limit":"things","identity":"anna","duration":"1h","reason":"x"}',
    ]) {
      expect((await app.post('keys/block', body)).status).toBe(400);
    }
    const patch = '{"limit":"things","patch":{"__proto__":{"rate":5}},"reason":"x"}';
    expect((await app.post('rates/set', patch)).status).toBe(400);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect((await app.post('rates/set', { limit: '__proto__', patch: { rate: 1 }, reason: 'x' })).status).toBe(400);
    expect((await app.get('ops/limits/api/top?limit[]=things')).status).toBe(400);
    expect((await app.get('ops/limits/api/overview?__proto__[range]=1d')).status).toBe(400);
    expect(await blocked()).toBe(false);
  });

  it('names no identity in a log line', async () => {
    const lines: unknown[] = [];
    const methods = ['log', 'warn', 'error', 'debug', 'verbose'] as const;
    for (const method of methods)
      jest.spyOn(Logger.prototype, method).mockImplementation((...args) => void lines.push(args));
    await app.post('lookup', { identity: 'secret-identity' });
    await app.post('keys/block', { ...BLOCK, identity: 'secret-identity', duration: 'wrong' });
    await app.change('keys/block', { ...BLOCK, identity: 'secret-identity' });
    jest.restoreAllMocks();
    expect(JSON.stringify(lines)).not.toContain('secret-identity');
  });

  it('keeps addresses out that are denied for all limits', async () => {
    for (const status of [403, 429] as const) {
      const other = await ConsoleApp.start({ fastify, limits: { lists: { status } } });
      expect((await other.get('ops/limits')).status).toBe(200);
      await other.service.deny({ ip: '127.0.0.0/8' });
      for (const path of ['ops/limits', ...READS.map((read) => `ops/limits/api/${read}`), 'ops/limits/api/write']) {
        expect((await other.get(path, { 'x-user': 'admin' })).status).toBe(status);
      }
      expect((await other.post('lists/remove', { ip: '127.0.0.0/8', reason: 'x' })).status).toBe(status);
      expect((await other.service.listEntries({ ip: '127.0.0.1' })).entries[0]).toMatchObject({ list: 'deny' });
      await other.service.allow({ ip: '127.0.0.1' });
      expect((await other.get('ops/limits/api/session')).status).toBe(200);
      await other.close();
    }
  });

  it.each([
    ['NUL', 'abuse\u0000'],
    ['a line feed', 'abuse\n2026-01-01 ERROR all limits are off'],
    ['a carriage return', 'abuse\r'],
    ['an escape', '\u001b[31mabuse'],
    ['a line separator', 'abuse\u2028'],
    ['an override of the direction', 'abuse \u202egnp.exe'],
    ['an isolate', 'abuse \u2066x'],
    ['a mark of the direction', 'abuse\u200f'],
    ['half a character', 'abuse \ud83d'],
  ])('takes no reason with %s', async (__, reason) => {
    for (const [path, body] of [
      ['keys/block', BLOCK],
      ['rates/set', { limit: 'things', patch: { rate: 3 } }],
      ['lists', { list: 'deny', identity: 'anna' }],
    ] as const) {
      const response = await app.post(path, { ...body, reason });
      const { errors } = (await response.json()) as Problem;
      expect([response.status, errors?.map(({ field }) => field)]).toEqual([400, ['reason']]);
    }
    await expect(app.service.deny({ identity: 'anna' }, { reason })).rejects.toThrow(
      'reason: expected a string of 1 to 200 characters on one line',
    );
    await expect(app.service.setRate('things', { rate: 3 }, { by: reason })).rejects.toThrow(
      'by: expected a string of 1 to 200 characters on one line',
    );
    expect(await blocked()).toBe(false);
  });

  it('limits its own routes, and no limit of the app does', async () => {
    const other = await ConsoleApp.start({
      fastify,
      limits: { limits: [{ name: 'all', algo: 'fixed-window', rate: 1, interval: '1h' }] },
    });
    for (let request = 0; request < 3; request++) {
      expect((await other.get('ops/limits/api/session')).status).toBe(200);
    }
    const own = other.service.for(CONSOLE_LIMIT);
    await own.block('ip:127.0.0.1', '1h');
    const refused = await other.get('ops/limits/api/session');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
    const { totals } = await other.overview();
    expect(Object.keys(totals)).toEqual([]);
    await other.close();
  });
});

describe('a console in an app of another kind', () => {
  let app: ConsoleApp;
  const start = async (options: ConsoleAppOptions) => (app = await ConsoleApp.start(options));

  afterEach(() => app.close());

  it('changes nothing without guards of changes', async () => {
    await start({ console: { write: undefined } });
    expect(await app.read<Session>('session')).toMatchObject({ writable: false });
    for (const path of CHANGES) {
      const response = await app.post(path, BLOCK);
      expect(response.status).toBe(403);
      expect(((await response.json()) as Problem).detail).toBe("this console is read-only: it has no option 'write'");
    }
    expect((await app.get('ops/limits/api/write', { 'x-user': 'admin' })).status).toBe(403);
  });

  it.each([
    ['Express', false],
    ['Fastify', true],
  ])('answers as ever where interceptors and pipes change all else, on %s', async (_, fastify) => {
    const wrap = {
      intercept: (__: unknown, next: CallHandler) => next.handle().pipe(map((data: unknown) => ({ data }))),
    };
    const setUp = (nest: INestApplication) => {
      nest.useGlobalInterceptors(wrap);
      nest.useGlobalPipes({ transform: () => ({}) });
      nest.enableCors({ origin: true, credentials: true });
    };
    await start({ fastify, setUp });
    expect(await app.read<Session>('session')).toMatchObject({ storage: 'memory' });
    await app.change('keys/block', BLOCK);
    const response = await app.post('keys/block', BLOCK, { origin: 'https://evil.example' });
    expect(response.status).toBe(403);
  });

  it('says that it needs a body parser', async () => {
    await start({ bodyParser: false });
    const response = await app.post('keys/block', BLOCK);
    expect(response.status).toBe(400);
    expect(((await response.json()) as Problem).detail).toContain("the app's body parser has to read application/json");
  });

  it('shows a name of somebody as one line of text', async () => {
    await start({ console: { actor: () => 'ada\u0000\n\u202e@example.com' } });
    await app.change('keys/block', BLOCK);
    await app.change('rates/set', { limit: 'things', patch: { rate: 3 } });
    const { changes } = await app.read<Changes>('changes');
    expect(changes.map(({ by }) => by)).toEqual(Array(2).fill('ada\ufffd\ufffd\ufffd@example.com'));
  });

  it('makes no change of which nobody knows who made it', async () => {
    await start({ console: { actor: () => '' } });
    const response = await app.post('keys/block', BLOCK);
    expect([response.status, await response.json()]).toEqual([
      500,
      expect.objectContaining({
        detail: expect.stringContaining(
          "option 'actor': expected it to return a string that is not empty, received ''",
        ),
      }),
    ]);
    expect((await app.service.for('things').peek('anna')).allowed).toBe(true);
  });
});
