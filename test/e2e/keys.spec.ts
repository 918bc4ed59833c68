import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get, Injectable } from '@nestjs/common';
import {
  type CommonLimitOptions,
  headerIdentity,
  type KeyFunction,
  type KeyResolver,
  type LimitKey,
  RateLimit,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import type { Check } from '../../lib/testing/store/index.js';
import { type AppOptions, type Framework, adapters, HttpApp } from './http-app.js';

@Injectable()
class Tenants {
  readonly names: Record<string, string> = { a: 'tenant:alpha' };
}

@Injectable()
class TenantResolver implements KeyResolver {
  constructor(private readonly tenants: Tenants) {}

  resolve(context: ExecutionContext): string | undefined {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    return this.tenants.names[headers['x-tenant'] ?? ''];
  }
}

/** Puts a user on every request before any guard runs. */
function withUser(framework: Framework, user: unknown): Partial<AppOptions> {
  type Step = (request: object, response: object, next: () => void) => void;
  const set: Step = (request, _, next) => {
    Object.assign(request, { user });
    next();
  };
  return {
    configure: (nest) => {
      const fastify = nest.getHttpAdapter().getInstance() as { addHook: (name: 'onRequest', hook: Step) => void };
      if (framework !== 'fastify') nest.use(set);
      else fastify.addHook('onRequest', set);
    },
  };
}

describe.each(adapters)('keys over %s', (framework) => {
  let app: HttpApp | undefined;

  /** An app with one limit of 2, and what it asked the store for. */
  async function start(common: CommonLimitOptions, more: Partial<AppOptions> = {}) {
    @Controller()
    class KeyController {
      @Get()
      @RateLimit({ name: 'key', algo: 'fixed-window', rate: 2, interval: '1m', ...common })
      list() {}
    }
    const started = await HttpApp.start(framework, { controllers: [KeyController], ...more });
    app = started;
    const identities: string[] = [];
    const { store } = started;
    const check = store.check.bind(store);
    store.check = (checks: readonly Check[]) => {
      identities.push(...checks.flatMap(({ entries }) => entries.map(({ identity }) => identity)));
      return check(checks);
    };
    return { identities, get: started.get.bind(started), statuses: started.statuses.bind(started) };
  }

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  it('counts by address, and believes no X-Forwarded-For by itself', async () => {
    const { statuses, get, identities } = await start({});
    const spoofed = (address: string) => get('/', { 'x-forwarded-for': address, forwarded: `for=${address}` });
    expect(await statuses(1, '/')).toEqual([200]);
    expect([(await spoofed('203.0.113.1')).status, (await spoofed('203.0.113.2')).status]).toEqual([200, 429]);
    expect(new Set(identities)).toEqual(new Set(['ip:127.0.0.1']));
  });

  it.each([
    ['203.0.113.7', 'ip:203.0.113.7'],
    ['::ffff:203.0.113.7', 'ip:203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', 'ip:2001:db8:1:2::'],
    ['2001:DB8:1:2:ffff::1', 'ip:2001:db8:1:2::'],
    ['2001:db8:1:3::1', 'ip:2001:db8:1:3::'],
    ['fe80::1%eth0', 'ip:fe80::'],
    ['::1', 'ip:::'],
    ['::1.2.3.4', 'ip:1.2.3.4'],
    ['::102:304', 'ip:1.2.3.4'],
    ['::ffff:0:102:304', 'ip:1.2.3.4'],
    ['64:ff9b::1.2.3.4', 'ip:1.2.3.4'],
    ['64:ff9b::102:304', 'ip:1.2.3.4'],
    ['64:ff9b:1::102:304', 'ip:64:ff9b:1::'],
    ['2002:102:304:5::6', 'ip:1.2.3.4'],
    ['2002:102:304:ffff::6', 'ip:1.2.3.4'],
    ['2001:0:506:708:0:f00d:fefd:fcfb', 'ip:1.2.3.4'],
    ['2001:1::1', 'ip:2001:1::'],
    ['203.0.113.7:4711', 'ip:203.0.113.7'],
    ['[2001:db8:1:2::9]:4711', 'ip:2001:db8:1:2::'],
    ['un{known}/x', 'ip:un_known__x'],
  ])('with a trusted proxy counts %s as %s', async (address, identity) => {
    const { get, identities } = await start({}, { trustProxy: true });
    await get('/', { 'x-forwarded-for': address });
    expect(identities).toEqual([identity]);
  });

  it.each([
    [48, 'ip:2001:db8:1::'],
    [56, 'ip:2001:db8:1:ff00::'],
    [128, 'ip:2001:db8:1:ff02:3:4:5:6'],
    [1, 'ip:::'],
  ])('counts IPv6 by /%i if told so', async (ipv6Prefix, identity) => {
    const { get, identities } = await start({}, { trustProxy: true, limits: { ipv6Prefix } });
    await get('/', { 'x-forwarded-for': '2001:db8:1:ff02:3:4:5:6' });
    expect(identities).toEqual([identity]);
  });

  it.each([
    [{ id: 42, sub: 'x' }, 'user:42'],
    [{ id: 0 }, 'user:0'],
    [{ sub: 'auth0|7' }, 'user:auth0|7'],
    [{ userId: 'u' }, 'user:u'],
    [{ id: 12n }, 'user:12'],
    ['name', 'user:name'],
    [7, 'user:7'],
    [{ id: '' }, 'ip:127.0.0.1'],
    [{ id: NaN }, 'ip:127.0.0.1'],
    [{ name: 'no id' }, 'ip:127.0.0.1'],
    [null, 'ip:127.0.0.1'],
  ])('counts the user %p as %s', async (user, identity) => {
    const { get, identities } = await start({ key: 'user' }, withUser(framework, user));
    await get('/');
    expect(identities).toEqual([identity]);
  });

  it('counts by a header without showing it to the store', async () => {
    const { get, identities } = await start({ key: 'header:X-API-Key' });
    await get('/', { 'x-api-key': 'secret' });
    await get('/', { 'X-Api-Key': 'secret' });
    await get('/', { 'x-api-key': 'other' });
    expect(identities[0]).toBe('header:x-api-key:K7gNU3sdo-OL0wNhqoVWhr3g6s1xYv72ol_pe_Unols');
    expect(headerIdentity('X-API-Key', 'secret')).toBe(identities[0]);
    expect(identities[1]).toBe(identities[0]);
    expect(identities[2]).not.toBe(identities[0]);
  });

  it.each<[string, LimitKey, string]>([
    ['global', 'global', 'global'],
    ['a function', () => 'team:7', 'team:7'],
    ['an async function', () => Promise.resolve('team:8'), 'team:8'],
    ['a class', TenantResolver, 'tenant:alpha'],
  ])('counts by %s', async (_, key, identity) => {
    const { get, identities } = await start({ key }, { providers: [Tenants, TenantResolver] });
    await get('/', { 'x-tenant': 'a' });
    expect(identities).toEqual([identity]);
  });

  it('makes an instance of a class that no module provides', async () => {
    @Injectable()
    class Loose implements KeyResolver {
      resolve = () => 'unused';
    }
    const { get, identities } = await start({ key: Loose });
    await get('/');
    expect(identities).toEqual(['unused']);
  });

  it.each([[() => undefined], [() => null], [() => ''], [() => Promise.resolve(undefined)], [TenantResolver]])(
    'does what onMissingKey says when %p finds nothing',
    async (key: LimitKey) => {
      const providers = [Tenants, TenantResolver];
      const byAddress = await start({ key }, { providers });
      expect((await byAddress.get('/')).status).toBe(200);
      expect(byAddress.identities).toEqual(['ip:127.0.0.1']);
      await app?.close();
      const skipped = await start({ key, onMissingKey: 'skip' }, { providers });
      expect(await skipped.statuses(3, '/')).toEqual([200, 200, 200]);
      expect(skipped.identities).toEqual([]);
      await app?.close();
      const refused = await start({ key, onMissingKey: 'refuse' }, { providers });
      expect((await refused.get('/')).status).toBe(400);
      expect(refused.identities).toEqual([]);
    },
  );

  it.each<[LimitKey, number, string]>([
    ['user', 401, 'Authentication is required'],
    ['header:x-api-key', 400, "The request has no header 'x-api-key'"],
  ])('refuses a request without %s with %i', async (key, status, message) => {
    const limits: RateLimitModuleOptions = { onMissingKey: 'refuse' };
    const { get } = await start({ key }, { limits });
    const response = await get('/');
    expect([response.status, ((await response.json()) as { message: string }).message]).toEqual([status, message]);
    await app?.close();
    const lenient = await start({ key, onMissingKey: 'ip' }, { limits });
    expect((await lenient.get('/')).status).toBe(200);
  });

  it.each<[string, () => unknown, string]>([
    ['a number', () => 42, '42'],
    ['a part', () => -0.5, '-0.5'],
    ['a bigint', () => 2n ** 64n, '18446744073709551616'],
    ['none', () => 0, '0'],
  ])('takes a number by its decimal text: %s', async (_, key, identity) => {
    const { get, identities } = await start({ key: key as KeyFunction });
    expect((await get('/')).status).toBe(200);
    expect(identities).toEqual([identity]);
  });

  it.each([NaN, Infinity, -Infinity, true, {}, Symbol('key')])('answers 500 to a key that is %p', async (key) => {
    const { get, identities } = await start({ key: () => key as never });
    expect((await get('/')).status).toBe(500);
    expect(identities).toEqual([]);
  });
});
