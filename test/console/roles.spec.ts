import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  Module,
  Scope,
  UnauthorizedException,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { of } from 'rxjs';
import { AdminGuard, ConsoleApp, OpsGuard, type Problem, type Session } from './console-app.js';

const userOf = (context: ExecutionContext) =>
  context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>().headers['x-user'];

@Injectable()
class OnCallGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return userOf(context) === 'on-call';
  }
}

const KEY = { limit: 'things', identity: 'anna', reason: 'a test' };
const LIMIT = { limit: 'things', reason: 'a test' };
const ENTRY = { identity: 'bert', reason: 'a test' };
const RATE = { rate: 20 };

/** Each route of changes with a body, and the role that it needs. */
const ROUTES: [path: string, body: object, role: 'act' | 'change'][] = [
  ['keys/block', { ...KEY, duration: '1h' }, 'act'],
  ['keys/unblock', KEY, 'act'],
  ['keys/reset', KEY, 'act'],
  ['keys/refund', { ...KEY, units: 1 }, 'act'],
  ['keys/penalize', { ...KEY, units: 1 }, 'act'],
  ['keys/override', { ...KEY, patch: RATE, expiresIn: '10m' }, 'act'],
  ['keys/clear-override', KEY, 'act'],
  ['lists', { ...ENTRY, list: 'deny', expiresIn: '10m' }, 'act'],
  ['lists/remove', ENTRY, 'act'],
  ['keys/override', { ...KEY, patch: RATE }, 'change'],
  ['keys/override', { ...KEY, identity: 'tenant:*', patch: RATE, expiresIn: '10m' }, 'change'],
  ['lists', { ...ENTRY, list: 'deny' }, 'change'],
  ['rates/set', { ...LIMIT, patch: RATE, expiresIn: '10m' }, 'change'],
  ['rates/clear', LIMIT, 'change'],
  ['deviations/clear', { ...LIMIT, of: 'rate', id: 'x' }, 'change'],
  ['modes/set', { ...LIMIT, mode: 'shadow', expiresIn: '10m' }, 'change'],
  ['modes/clear', LIMIT, 'change'],
  ['candidates/set', { ...LIMIT, patch: RATE }, 'change'],
  ['candidates/enforce', LIMIT, 'change'],
  ['candidates/clear', LIMIT, 'change'],
  ['undo', { version: 1, reason: 'a test' }, 'change'],
  ['rollback', { version: 0, reason: 'a test' }, 'change'],
];

const as = (user: string) => ({ 'x-user': user });

describe.each([
  ['Express', false],
  ['Fastify', true],
])('the roles of the console on %s', (_, fastify) => {
  let app: ConsoleApp;

  beforeAll(async () => {
    app = await ConsoleApp.start({ fastify, console: { act: [OnCallGuard] } });
  });
  afterAll(() => app.close());

  it.each(ROUTES)('lets nobody call %s %j without the role %s', async (path, body, role) => {
    const refused = async (user: string) => {
      const response = await app.post(path, body, as(user));
      expect([user, response.status]).toEqual([user, 403]);
      expect(response.headers.get('content-type')).toContain('application/problem+json');
      return ((await response.json()) as Problem).detail;
    };
    // Whoever may do nothing is refused before the body is read, with the smaller role that the route needs.
    expect(await refused('ops')).toMatch(/^this needs the role '(act|change)', which only the guards of/);
    if (role === 'change')
      expect(await refused('on-call')).toMatch(
        /^this needs the role 'change', which only the guards of the option 'write' grant/,
      );
    else expect((await app.post(path, body, as('on-call'))).status).toBe(200);
    expect((await app.post(path, body, as('admin'))).status).not.toBe(403);
  });

  it('says who may do what', async () => {
    const may = async (user: string) => [
      (await app.get('ops/limits/api/session', as(user))).status,
      (await app.get('ops/limits/api/act', as(user))).status,
      (await app.get('ops/limits/api/write', as(user))).status,
    ];
    expect(await may('ops')).toEqual([200, 403, 403]);
    expect(await may('on-call')).toEqual([200, 204, 403]);
    expect(await may('admin')).toEqual([200, 204, 204]);
    expect((await fetch(`${app.url}/ops/limits/api/act`)).status).toBe(403);
    expect(await app.read<Session>('session')).toMatchObject({ actable: true, writable: true });
  });
});

describe('what has no end', () => {
  let app: ConsoleApp;

  beforeEach(async () => {
    app = await ConsoleApp.start({ console: { act: [OnCallGuard] } });
  });
  afterEach(() => app.close());

  const status = async (path: string, body: object) => (await app.post(path, body, as('on-call'))).status;

  it('is not replaced or cleared by those who may act: a rate', async () => {
    await app.service.setRate('things', RATE, { key: 'anna' });
    expect(await status('keys/override', { ...KEY, patch: { rate: 1 }, expiresIn: '1m' })).toBe(403);
    expect(await status('keys/clear-override', KEY)).toBe(403);
    expect(await app.service.getRate('things', { key: 'anna' })).toMatchObject({ options: { rate: 20 } });
    await app.service.setRate('things', RATE, { key: 'anna', expiresIn: '1h' });
    expect(await status('keys/override', { ...KEY, patch: { rate: 1 }, expiresIn: '1m' })).toBe(200);
    expect(await status('keys/clear-override', KEY)).toBe(200);
  });

  it('does not keep them from a single key of many', async () => {
    await app.service.setRate('things', RATE, { key: 'an*' });
    expect(await status('keys/override', { ...KEY, patch: { rate: 1 }, expiresIn: '1m' })).toBe(200);
    expect(await app.service.getRate('things', { key: 'anna' })).toMatchObject({ options: { rate: 1 } });
  });

  it.each([
    ['an identity', { identity: 'bert' }, { identity: 'bert' }],
    ['a pattern', { pattern: 'tenant:*' }, { identity: 'tenant:*' }],
    ['a network', { ip: '2001:db8::/32' }, { ip: '2001:0DB8:0:0::/32' }],
  ])('is not replaced or removed by those who may act: an entry of %s', async (_, entry, named) => {
    await app.service.allow(entry);
    const { entries } = await app.service.listEntries();
    expect(entries).toMatchObject([{ list: 'allow' }]);
    expect(await status('lists', { ...named, list: 'deny', expiresIn: '1m', reason: 'x' })).toBe(403);
    expect(await status('lists/remove', { ...named, reason: 'x' })).toBe(403);
    const shown = await app.read<{ entries: { id: string }[] }>('lists');
    expect(await status('lists/remove', { id: shown.entries[0]!.id, reason: 'x' })).toBe(403);
    expect((await app.service.listEntries()).entries).toMatchObject([{ list: 'allow' }]);
    await app.service.allow(entry, { expiresIn: '1h' });
    expect(await status('lists', { ...named, list: 'deny', expiresIn: '1m', reason: 'x' })).toBe(200);
    expect(await status('lists/remove', { id: shown.entries[0]!.id, reason: 'x' })).toBe(200);
    expect((await app.service.listEntries()).entries).toEqual([]);
  });
});

describe('the guards of roles', () => {
  let app: ConsoleApp;

  afterEach(() => app.close());

  const block = async (user: string) => (await app.post('keys/block', { ...KEY, duration: '1h' }, as(user))).status;

  it('may be all that there are: then nobody changes anything else', async () => {
    app = await ConsoleApp.start({ console: { act: [OnCallGuard], write: undefined } });
    expect(await app.read<Session>('session')).toMatchObject({ actable: true, writable: false });
    expect([await block('on-call'), await block('admin')]).toEqual([200, 403]);
    const response = await app.post('rates/set', { ...LIMIT, patch: RATE });
    expect([response.status, ((await response.json()) as Problem).detail]).toEqual([
      403,
      expect.stringContaining("the role 'change'"),
    ]);
  });

  it('are as before without act', async () => {
    app = await ConsoleApp.start();
    expect(await app.read<Session>('session')).toMatchObject({ actable: true, writable: true });
    expect([await block('ops'), await block('admin')]).toEqual([403, 200]);
    expect((await app.post('keys/override', { ...KEY, patch: RATE })).status).toBe(200);
    expect((await app.get('ops/limits/api/act', as('admin'))).status).toBe(204);
    expect((await app.get('ops/limits/api/act', as('ops'))).status).toBe(403);
  });

  it('may be objects, observables, of one request, and inject something', async () => {
    @Injectable()
    class Users {
      readonly onCall = 'on-call';
    }
    @Module({ providers: [Users], exports: [Users] })
    class UsersModule {}
    @Injectable({ scope: Scope.REQUEST })
    class OfRequestGuard implements CanActivate {
      constructor(
        private readonly users: Users,
        @Inject(REQUEST) private readonly request: { headers: Record<string, string> },
      ) {}

      canActivate(): boolean {
        return this.request.headers['x-user'] === this.users.onCall;
      }
    }
    const anybody = { canActivate: () => of(true) };
    app = await ConsoleApp.start({ console: { imports: [UsersModule], act: [anybody, OfRequestGuard] } });
    expect([await block('on-call'), await block('ops'), await block('admin')]).toEqual([200, 403, 200]);
  });

  it('answer by what they throw, unless the larger role is given', async () => {
    @Injectable()
    class ThrowingGuard extends OnCallGuard {
      override canActivate(context: ExecutionContext): boolean {
        if (!super.canActivate(context)) throw new UnauthorizedException();
        return true;
      }
    }
    app = await ConsoleApp.start({ console: { guards: [OpsGuard], act: [ThrowingGuard], write: [AdminGuard] } });
    expect([await block('on-call'), await block('ops'), await block('admin')]).toEqual([200, 403, 200]);
    await app.close();
    app = await ConsoleApp.start({ console: { act: [ThrowingGuard], write: undefined } });
    expect(await block('ops')).toBe(401);
  });
});
