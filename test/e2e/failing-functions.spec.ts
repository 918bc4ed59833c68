import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Logger,
  NotFoundException,
  UseGuards,
} from '@nestjs/common';
import { type KeyResolver, type LimitDefinition, RateLimit } from '../../lib/index.js';
import { adapters, HttpApp } from './http-app.js';

interface UserRequest {
  user?: { id: string };
}

const userOf = (context: ExecutionContext) => context.switchToHttp().getRequest<UserRequest>().user!;
const id = (context: ExecutionContext) => userOf(context).id;

@Injectable()
class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    context.switchToHttp().getRequest<UserRequest>().user = { id: 'ann' };
    return true;
  }
}

@Injectable()
class UserKey implements KeyResolver {
  resolve = async (context: ExecutionContext) => id(context);
}

const minute = { name: 'users', algo: 'fixed-window', rate: 1, interval: '1m' } as const;

function controllerWith(limit: LimitDefinition) {
  @Controller()
  @UseGuards(UserGuard)
  class UsersController {
    @Get()
    @RateLimit(limit)
    list() {}
  }
  return UsersController;
}

describe.each(adapters)('a function of a limit that fails, over %s', (framework) => {
  let app: HttpApp | undefined;
  let logged: [text: string, reason: string][];
  beforeEach(() => {
    logged = [];
    jest.spyOn(Logger.prototype, 'error').mockImplementation((text: unknown, reason: unknown) => {
      if (String(text).startsWith('limit ')) logged.push([String(text), String(reason)]);
    });
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await app?.close();
    app = undefined;
  });

  const start = async (limit: LimitDefinition) => {
    app = await HttpApp.start(framework, { controllers: [controllerWith(limit)] });
    return app;
  };

  const failing: readonly [string, LimitDefinition][] = [
    ['key', { ...minute, key: id }],
    ['key', { ...minute, key: async (context) => id(context) }],
    ['key', { ...minute, key: UserKey }],
    ['cost', { ...minute, cost: (context) => id(context).length }],
    ['skip', { ...minute, skip: async (context) => id(context) === 'bob' }],
    ['share.by', { ...minute, algo: 'gcra', share: { by: id } }],
  ];

  it.each(failing)('is named as %s, once, with limit, route and what helps', async (option, limit) => {
    const { status } = await (await start(limit)).get('/');
    expect([status, (await app!.get('/')).status]).toEqual([500, 500]);
    expect(logged).toEqual([
      [
        `limit 'users' on UsersController.list: its '${option}' failed in phase 'guard', so the request fails; request.user is ` +
          "undefined there: if a guard of the route sets it, add phase: 'authenticated'",
        expect.stringContaining('TypeError: '),
      ],
    ]);
  });

  it('is named without the phase that helps where the user is known', async () => {
    await start({ ...minute, phase: 'authenticated', key: () => (undefined as unknown as string).trim() });
    expect((await app!.get('/')).status).toBe(500);
    expect(logged).toEqual([
      [
        "limit 'users' on UsersController.list: its 'key' failed in phase 'authenticated', so the request fails",
        expect.stringContaining('TypeError: '),
      ],
    ]);
  });

  it('is not logged if it refuses on purpose, and works in the phase that helps', async () => {
    await start({
      ...minute,
      key: () => {
        throw new NotFoundException();
      },
    });
    expect((await app!.get('/')).status).toBe(404);
    await app!.close();
    await start({ ...minute, key: id, phase: 'authenticated' });
    expect((await app!.get('/')).status).toBe(200);
    expect(logged).toEqual([]);
  });
});
