import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Logger,
  UseGuards,
} from '@nestjs/common';
import { type KeyResolver, type LimitDefinition, RateLimit } from '../../lib/index.js';
import { until } from '../support/time/until.js';
import { adapters, HttpApp } from './http-app.js';

interface TenantRequest {
  headers: Record<string, string | undefined>;
  user?: { tenant: string };
}

const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest<TenantRequest>();
const tenant = (context: ExecutionContext) => requestOf(context).user?.tenant;
const nobody = () => undefined;

@Injectable()
class TenantGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = requestOf(context);
    const name = request.headers['x-tenant'];
    if (name !== undefined) request.user = { tenant: name };
    return true;
  }
}

@Injectable()
class TenantKey implements KeyResolver {
  resolve(context: ExecutionContext) {
    return tenant(context);
  }
}

const minute = { algo: 'fixed-window', rate: 1, interval: '1m' } as const;

function controllerWith(limit: LimitDefinition) {
  @Controller()
  @UseGuards(TenantGuard)
  class TenantsController {
    @Get()
    @RateLimit(limit)
    list() {}
  }
  return TenantsController;
}

let app: HttpApp | undefined;
let warned: string[];
beforeEach(() => {
  warned = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((text: unknown) => void warned.push(String(text)));
});
afterEach(async () => {
  await app?.close();
  app = undefined;
});

describe.each(adapters)('a function that finds no key, over %s', (framework) => {
  const ask = async (limit: LimitDefinition, tenants: (string | undefined)[], onMissingKey?: 'ip') => {
    const limits = onMissingKey === undefined ? {} : { onMissingKey };
    app = await HttpApp.start(framework, { controllers: [controllerWith(limit)], limits });
    const statuses: number[] = [];
    for (const name of tenants) {
      statuses.push((await app.get('/', name === undefined ? {} : { 'x-tenant': name })).status);
    }
    return statuses;
  };

  it('is reported once, with its limit, its route and what helps where a guard finds the user behind it', async () => {
    const limit = { ...minute, name: 'tenants', key: tenant };
    expect(await ask(limit, ['acme', 'globex', 'globex'])).toEqual([200, 429, 429]);
    await until(() => warned.length === 2);
    expect(warned[0]).toMatch(
      /^limit 'tenants' on TenantsController\.list: its 'key' is a function that found nothing in phase 'guard', so the limit counts by address\./,
    );
    expect(warned[1]).toMatch(
      /^limit 'tenants' on TenantsController\.list: .*found a user after it.*phase: 'authenticated'$/,
    );
    expect(await app!.statuses(3, '/', { 'x-tenant': 'initech' })).toEqual([429, 429, 429]);
    expect(warned).toHaveLength(2);
  });

  it('is reported of a class, too, and where no user is found', async () => {
    expect(await ask({ ...minute, name: 'tenants', key: TenantKey }, [undefined, undefined])).toEqual([200, 429]);
    expect(warned).toEqual([expect.stringContaining("limit 'tenants' on TenantsController.list")]);
  });

  it('counts by tenant as the report says, and needs none then', async () => {
    const limit = { ...minute, name: 'tenants', key: tenant, phase: 'authenticated' } as const;
    expect(await ask(limit, ['acme', 'globex', 'globex'])).toEqual([200, 200, 429]);
    expect(warned).toEqual([]);
  });

  it('is reported of a hierarchy with the phase of all of its levels', async () => {
    @Controller()
    @UseGuards(TenantGuard)
    class UsersController {
      @Get()
      @RateLimit('user')
      list() {}
    }
    const define: Record<string, LimitDefinition> = {
      org: { ...minute, key: nobody },
      user: { ...minute, key: tenant, within: 'org', phase: 'authenticated' },
    };
    app = await HttpApp.start(framework, { controllers: [UsersController], limits: { define } });
    expect(await app.statuses(1, '/', { 'x-tenant': 'acme' })).toEqual([200]);
    expect(warned).toEqual([
      "limit 'org' on UsersController.list: its 'key' is a function that found nothing in phase 'authenticated', " +
        "so the limit counts by address. If this is intended, set onMissingKey: 'ip'",
    ]);
  });

  it('is not reported where the address is meant', async () => {
    const limit = { ...minute, name: 'tenants', key: tenant } as const;
    await ask({ ...limit, onMissingKey: 'ip' }, ['acme']);
    await app?.close();
    await ask(limit, ['acme'], 'ip');
    expect(warned).toEqual([]);
  });

  it('is reported of who shares a limit', async () => {
    const limit = {
      algo: 'gcra',
      name: 'shared',
      rate: 5,
      interval: '1m',
      key: 'global',
      share: { by: tenant },
    } as const;
    await ask(limit, [undefined]);
    expect(warned).toEqual([expect.stringContaining("its 'share.by' is a function that found nothing")]);
  });
});

describe('a key that identifies nobody', () => {
  const start = async (limit: LimitDefinition, user?: unknown) => {
    @Injectable()
    class UserGuard implements CanActivate {
      canActivate(context: ExecutionContext): boolean {
        (requestOf(context) as { user?: unknown }).user = user;
        return true;
      }
    }
    @Controller()
    @UseGuards(UserGuard)
    class UsersController {
      @Get()
      @RateLimit({ name: 'each', ...limit })
      list() {}
    }
    app = await HttpApp.start('express', { controllers: [UsersController], limits: {} });
    return app.statuses(2, '/');
  };

  it.each(['undefined', 'user:undefined', 'user/null', 'user:NaN', 'a [object Object]'])(
    'such as %j is reported once',
    async (key) => {
      expect(await start({ ...minute, key: () => key })).toEqual([200, 429]);
      expect(warned).toEqual([
        `limit 'each' on UsersController.list: its 'key' returned '${key}', so all requests that lack this value count together. ` +
          "Return undefined for them; request.user is known only after the guards: if the key needs it, add phase: 'authenticated'",
      ]);
    },
  );

  it('is reported of a promise, of a class, and after the guards', async () => {
    const late = { ...minute, key: async () => 'user:undefined', phase: 'authenticated' } as const;
    await start(late);
    await app!.close();
    await start({
      ...minute,
      key: class implements KeyResolver {
        resolve = () => 'user:null';
      },
    });
    expect(warned).toEqual([
      expect.stringMatching(
        /'user:undefined', so all requests that lack this value count together\. Return undefined for them$/,
      ),
      expect.stringContaining("its 'key' returned 'user:null'"),
    ]);
  });

  it.each(['user:nonnull', 'user:undefined:1', 'aNaN', 'null:1'])('is not one such as %j', async (key) => {
    await start({ ...minute, key: () => key });
    expect(warned).toEqual([]);
  });

  it.each([undefined, 'refuse'] as const)(
    'is that of a user without an id, if a missing key is %j',
    async (outcome) => {
      const limit = { ...minute, key: 'user', ...(outcome !== undefined && { onMissingKey: outcome }) } as const;
      await start(limit, { _id: 'a1', email: 'ann@example.com' });
      expect(warned).toEqual([
        "limit 'each' on UsersController.list: request.user has no 'id', 'sub' or 'userId' that is a string or a number, so the request " +
          "counts as unauthenticated. request.user has the fields '_id', 'email'. Set the limit's 'key' to a function that returns the " +
          "field that identifies a user, and add phase: 'authenticated'",
      ]);
    },
  );

  it.each([undefined, null, { id: 7 }, 'ann'])('is not that of the user %j', async (user) => {
    await start({ ...minute, key: 'user' }, user);
    expect(warned).toEqual([]);
  });
});
