/**
 * A key from outside, which the list of keys is given. This spec is the only one that meets it:
 * @library own
 */
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { type CommonLimitOptions, type LimitKey, RateLimit, RateLimitConfigError } from '../../lib/index.js';
import { keySchemes } from '../../lib/app/key-resolvers/index.js';
import type { KeyScheme } from '../../lib/app/key-resolvers/key-scheme.js';
import { HttpApp, startUp } from './http-app.js';

/** A form of key from outside of the package: counts by a parameter of the query. */
const queryKey: KeyScheme<`query:${string}`, string> = {
  form: "'query:<name>'",
  parse(key, location) {
    if (typeof key !== 'string' || !key.startsWith('query:')) return undefined;
    const name = key.slice('query:'.length);
    if (/^\w+$/.test(name)) return name;
    throw new RateLimitConfigError(`${location}.key: expected a name of letters after 'query:', received '${key}'`);
  },
  describe: (parameter, name) => ({ name, noun: `parameter '${parameter}'` }),
  needsRoute: false,
  resolve: (parameter) => (context) => {
    const { query } = context.switchToHttp().getRequest<{ query: Record<string, unknown> }>();
    const value = query[parameter];
    return typeof value === 'string' ? `query:${parameter}:${value}` : undefined;
  },
};
keySchemes.push(queryKey);

const minute = { algo: 'fixed-window', rate: 1, interval: '1m' } as const;
/** The types of the package know its own keys only. */
const byToken = 'query:token' as unknown as LimitKey;
const wrong = 'query:to ken' as unknown as LimitKey;

describe('a form of key that a test adds', () => {
  let app: HttpApp | undefined;
  afterEach(() => app?.close());

  async function start(common: CommonLimitOptions): Promise<HttpApp> {
    @Controller()
    class Routes {
      @RateLimit({ ...minute, ...common })
      @Get()
      get(): string {
        return 'ok';
      }
    }
    app = await HttpApp.start('express', { controllers: [Routes] });
    return app;
  }

  it('counts by its parameter, under a name of its own', async () => {
    const started = await start({ key: byToken });
    expect(await started.statuses(2, '/?token=a')).toEqual([200, 429]);
    expect(await started.statuses(2, '/?token=b')).toEqual([200, 429]);
    expect((await started.get('/?token=a')).headers.get('ratelimit-policy')).toBe(
      '"fixed-window:1/1m:query:token";q=1;w=60',
    );
  });

  it('follows onMissingKey for a request without one', async () => {
    const refusing = await start({ key: byToken, onMissingKey: 'refuse' });
    const response = await refusing.get('/');
    expect([response.status, ((await response.json()) as { message: string }).message]).toEqual([
      400,
      "The request has no parameter 'token'",
    ]);
    await refusing.close();
    expect(await (await start({ key: byToken })).statuses(2, '/')).toEqual([200, 429]);
  });

  it('is listed for a key of no form, and reports a wrong key of its own form', async () => {
    await expect(startUp({ limits: [{ ...minute, key: 7 as never }] })).rejects.toThrow(
      "expected 'ip', 'user', 'global', 'header:<name>', a function, a class that implements KeyResolver or 'query:<name>'",
    );
    await expect(startUp({ limits: [{ ...minute, key: wrong }] })).rejects.toThrow(
      "limits[0].key: expected a name of letters after 'query:', received 'query:to ken'",
    );
  });

  it('can be asked by a middleware if it needs no route', async () => {
    await expect(startUp({ limits: [{ ...minute, key: 'user', phase: 'middleware' }] })).rejects.toThrow(
      "'header:<name>', a function, a class that implements KeyResolver or 'query:<name>' in phase 'middleware'",
    );
    await expect(startUp({ limits: [{ ...minute, key: byToken, phase: 'middleware' }] })).resolves.toBeUndefined();
  });
});
