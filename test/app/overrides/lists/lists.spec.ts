import { describe, expect, it } from '@jest/globals';
import {
  type DecisionEvent,
  type ListEntry,
  RateLimitConfigError,
  type RateLimitModuleOptions,
  RateLimitTimeoutError,
} from '../../../../lib/index.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { RatesApp, startForEach, until } from '../overrides-app.js';
import { variants } from '../../../support/tier.js';

const define = {
  login: { algo: 'gcra', rate: 10, interval: '1h' },
  window: { algo: 'fixed-window', rate: 1, interval: '1h' },
  jobs: { algo: 'concurrency', limit: 1, ttl: '1m' },
  tried: { algo: 'fixed-window', rate: 1, interval: '1h', mode: 'shadow' },
} as const;

const kinds: Record<string, () => RateLimitModuleOptions> = {
  'on Redis': () => ({ define, redis: process.env['TEST_REDIS_URL'], prefix: freshPrefix() }),
  'in process': () => ({ define }),
};

const ACME = { identity: 'tenant:acme' };
const TENANTS = { pattern: 'tenant:*' };

describe.each(variants(Object.entries(kinds)))('lists that change while the app runs, %s', (_, options) => {
  let app: RatesApp;

  startForEach(options, (started) => (app = started));

  const said = async (key: string, name = 'login') => {
    const { allowed, source } = await app.service.for(name).consume(key);
    return source === 'list' ? (allowed ? 'allow' : 'deny') : undefined;
  };

  it('refuse an identity, and let it go', async () => {
    const { service } = app;
    await service.deny(ACME);
    expect(await service.for('login').consume('tenant:acme', 3)).toEqual({
      allowed: false,
      limit: 'login',
      quota: 10,
      remaining: 0,
      retryAfterMs: Infinity,
      resetAfterMs: 0,
      delayMs: 0,
      source: 'list',
    });
    expect(await said('tenant:acme', 'window')).toBe('deny');
    expect(await said('tenant:acme2')).toBeUndefined();
    expect(await service.unlist(ACME)).toBe(true);
    expect(await service.unlist(ACME)).toBe(false);
    expect(await service.for('login').peek('tenant:acme')).toMatchObject({ remaining: 10 });
  });

  it('exempt an identity, which is not charged', async () => {
    const { service } = app;
    await service.allow(ACME, { limit: 'window' });
    for (let count = 0; count < 3; count++) {
      expect(await service.for('window').consume('tenant:acme')).toMatchObject({
        allowed: true,
        remaining: 1,
        source: 'list',
      });
      expect(await said('tenant:acme')).toBeUndefined();
    }
    // An entry that is on one list moves to the other.
    await service.deny(ACME, { limit: 'window' });
    expect(await said('tenant:acme', 'window')).toBe('deny');
    await service.unlist(ACME, { limit: 'window' });
    expect(await service.for('window').consume('tenant:acme')).toMatchObject({ allowed: true, remaining: 0 });
  });

  it('decide by the most specific entry of a kind', async () => {
    const { service } = app;
    await service.deny(TENANTS);
    await service.allow({ pattern: 'tenant:eu:*' });
    await service.deny({ identity: 'tenant:eu:1' });
    const keys = ['user:1', 'tenant:', 'tenant:b', 'tenant:eu:', 'tenant:eu:2', 'tenant:eu:1', 'tenant:eu:11'];
    expect(await Promise.all(keys.map((key) => said(key)))).toEqual([
      undefined,
      'deny',
      'deny',
      'allow',
      'allow',
      'deny',
      'allow',
    ]);
  });

  it('of a limit and of all limits refuse if either does', async () => {
    const { service } = app;
    await service.deny(TENANTS);
    await service.allow(ACME, { limit: 'login' });
    expect(await said('tenant:acme')).toBe('deny');
    await service.allow(TENANTS);
    await service.deny(ACME, { limit: 'login' });
    expect([await said('tenant:acme'), await said('tenant:acme', 'window')]).toEqual(['deny', 'allow']);
    await service.unlist(ACME, { limit: 'login' });
    expect(await said('tenant:acme')).toBe('allow');
  });

  it('of a limit hold for all that code calls by its name, and for no other limit', async () => {
    const { service } = app;
    await service.deny(ACME, { limit: 'login' });
    expect(await service.for({ name: 'login', ...define.login }).consume('tenant:acme')).toMatchObject({
      allowed: false,
      source: 'list',
    });
    expect(await service.for({ name: 'other', ...define.login }).consume('tenant:acme')).toMatchObject({
      allowed: true,
    });
  });

  it('leave other limits of a check alone if one is refused', async () => {
    const { service } = app;
    const events: DecisionEvent[] = [];
    service.decisions$.subscribe((event) => events.push(event));
    const checks = ['window', 'login', 'jobs'].map((limit) => ({ limit, key: 'tenant:acme' }));
    await service.deny(ACME, { limit: 'login' });
    const refused = await service.check(checks);
    expect(refused).toMatchObject({
      allowed: false,
      tightest: { limit: 'login', source: 'list' },
      decisions: [{ allowed: true }, { allowed: false }, { allowed: true }],
    });
    expect(events).toMatchObject([{ limit: 'login', outcome: 'refused', source: 'list', cost: 1 }]);
    await service.allow(ACME, { limit: 'login' });
    const { decisions, allowed } = await service.check(checks);
    expect(allowed).toBe(true);
    expect(decisions).toMatchObject([{ limit: 'window', remaining: 0 }, { source: 'list' }, { limit: 'jobs' }]);
    expect(events.slice(1).map(({ limit, source, outcome }) => [limit, source === 'list', outcome])).toEqual([
      ['window', false, 'allowed'],
      ['login', true, 'allowed'],
      ['jobs', false, 'allowed'],
    ]);
    // What fills one of them still refuses.
    await service.allow(ACME, { limit: 'jobs' });
    expect(await service.check(checks)).toMatchObject({ allowed: false, tightest: { limit: 'window' } });
    await service.allow(ACME);
    const open = await service.check(checks);
    expect(open.decisions.map(({ source }) => source)).toEqual(['list', 'list', 'list']);
    await open.decisions[2]!.lease!.release();
  });

  it('refuse nothing through a limit in shadow mode, and leave one alone that is off', async () => {
    const { service } = app;
    const events: DecisionEvent[] = [];
    service.decisions$.subscribe((event) => events.push(event));
    await service.deny(ACME);
    expect(await service.for('tried').consume('tenant:acme')).toMatchObject({ allowed: true, source: 'list' });
    await service.setMode('login', 'shadow');
    expect(await service.for('login').consume('tenant:acme')).toMatchObject({ allowed: true, source: 'list' });
    await service.setMode('login', 'off');
    expect(await service.for('login').consume('tenant:acme')).toMatchObject({ allowed: true, source: 'memory' });
    await service.setMode('login', 'enforce');
    expect(await said('tenant:acme')).toBe('deny');
    expect(events.map(({ outcome }) => outcome)).toEqual(['shadow-refused', 'shadow-refused', 'refused']);
  });

  it('end waiting, reserving and holding at once', async () => {
    const { service } = app;
    await service.deny(ACME);
    const acquired = service.for('login').acquire('tenant:acme');
    await expect(acquired).rejects.toThrow(RateLimitTimeoutError);
    await expect(acquired).rejects.toThrow("a list denies the key for limit 'login'");
    await expect(acquired).rejects.toMatchObject({ decision: { source: 'list' } });
    expect(await service.for('login').reserve('tenant:acme')).toMatchObject({ allowed: false });
    await expect(service.for('jobs').hold('tenant:acme', () => 'done')).rejects.toThrow(RateLimitTimeoutError);
    await service.allow(ACME);
    const jobs = service.for('jobs');
    expect(await jobs.hold('tenant:acme', () => jobs.hold('tenant:acme', () => 'done'))).toBe('done');
    const { lease } = await jobs.consume('tenant:acme');
    expect(await lease!.renew()).toBe(true);
    await lease!.release();
    for (let count = 0; count < 3; count++) await service.for('window').acquire('tenant:acme');
    const reservation = await service.for('login').reserve('tenant:acme', { cost: 10 });
    await reservation.cancel();
    await service.unlist(ACME);
    // Nothing was charged, and nothing given back.
    expect(await service.for('login').peek('tenant:acme')).toMatchObject({ remaining: 10 });
    expect(await service.for('window').peek('tenant:acme')).toMatchObject({ remaining: 1 });
  });

  it('end by themselves', async () => {
    await app.service.deny(ACME, { expiresIn: '1h' });
    const { expiresAt } = (await app.service.listEntries({ key: 'tenant:acme' })).entries[0]!;
    expect(expiresAt).toBeGreaterThan(0);
    expect(await said('tenant:acme')).toBe('deny');
    await app.service.deny(ACME, { expiresIn: 30 });
    await until(() => said('tenant:acme'), undefined);
    expect((await app.service.listEntries({ key: 'tenant:acme' })).entries[0]).toBeUndefined();
    expect(await app.service.listEntries()).toEqual({ entries: [], next: undefined });
  });

  it('tell who is on them', async () => {
    const { service } = app;
    await service.deny({ ip: '2001:DB8:0::/32' }, { by: 'eva', reason: 'scraping' });
    await service.allow({ ip: '::ffff:10.0.0.0/104' });
    await service.allow(TENANTS, { limit: 'login' });
    await service.deny(ACME, { limit: 'login' });
    await service.deny(ACME);
    const all = await service.listEntries();
    const known = { source: 'changed', expiresAt: undefined };
    expect(all).toEqual({
      entries: [
        { entry: { ip: '10.0.0.0/8' }, list: 'allow', version: 2, ...known },
        { entry: { ip: '2001:db8::/32' }, list: 'deny', version: 1, by: 'eva', reason: 'scraping', ...known },
        { entry: ACME, list: 'deny', version: 5, ...known },
        { entry: TENANTS, list: 'allow', limit: 'login', version: 3, ...known },
        { entry: ACME, list: 'deny', limit: 'login', version: 4, ...known },
      ],
      next: undefined,
    });
    expect((await service.listEntries({ limit: 'login', list: 'deny' })).entries).toEqual([all.entries[4]]);
    const paged = [];
    let cursor: string | undefined;
    do {
      const page = await service.listEntries({ count: 2, ...(cursor !== undefined && { cursor }) });
      paged.push(...page.entries);
      expect(page.entries.length).toBeLessThanOrEqual(2);
      cursor = page.next;
    } while (cursor !== undefined);
    expect(paged).toEqual(all.entries);
    expect((await service.listEntries({ ip: '::ffff:10.255.0.1' })).entries[0]).toEqual(all.entries[0]);
    expect((await service.listEntries({ ip: '2001:db8:ffff::1' })).entries[0]).toEqual(all.entries[1]);
    expect((await service.listEntries({ ip: '10.0.0.1', key: 'tenant:acme' })).entries[0]).toEqual(all.entries[2]);
    expect((await service.listEntries({ key: 'tenant:b', limit: 'login' })).entries[0]).toEqual(all.entries[3]);
    expect((await service.listEntries({ key: 'tenant:b' })).entries[0]).toBeUndefined();
    expect((await service.listEntries({ key: 'tenant:acme', limit: 'login' })).entries[0]).toEqual(all.entries[2]);
    // Only those that decide: one for a client, and none on the other list.
    expect(await service.listEntries({ key: 'tenant:acme', count: 1 })).toEqual({
      entries: [all.entries[2]],
      next: undefined,
    });
    expect(await service.listEntries({ key: 'tenant:acme', list: 'deny' })).toMatchObject({
      entries: [{ version: 5 }],
    });
    expect(await service.listEntries({ key: 'tenant:acme', list: 'allow' })).toEqual({ entries: [], next: undefined });
  });

  it('have a history, and are rolled back', async () => {
    const { service } = app;
    await service.deny(ACME, { by: 'eva', reason: 'abuse' });
    await service.setRate('login', { rate: 20 });
    await service.allow({ ip: '10.0.0.0/8' }, { limit: 'login' });
    await service.allow(ACME);
    await service.unlist(ACME, { by: 'ben' });
    const changes = await service.changes();
    const entry = { entry: ACME, source: 'changed', expiresAt: undefined };
    const denied = { ...entry, list: 'deny', version: 1, by: 'eva', reason: 'abuse' };
    expect(changes.map(({ overrides }) => overrides[0])).toEqual([
      { kind: 'list', entry: ACME, before: { ...entry, list: 'allow', version: 4 }, after: undefined },
      { kind: 'list', entry: ACME, before: denied, after: { ...entry, list: 'allow', version: 4 } },
      {
        kind: 'list',
        limit: 'login',
        entry: { ip: '10.0.0.0/8' },
        before: undefined,
        after: { ...entry, entry: { ip: '10.0.0.0/8' }, list: 'allow', limit: 'login', version: 3 },
      },
      expect.objectContaining({ kind: 'rate', limit: 'login' }),
      { kind: 'list', entry: ACME, before: undefined, after: denied },
    ]);
    expect((await service.changes({ limit: 'login' })).map(({ version }) => version)).toEqual([3, 2]);
    expect(await service.rollback(1, { by: 'ops' })).toBe(true);
    expect((await service.listEntries()).entries).toMatchObject([{ entry: ACME, list: 'deny' }]);
    expect(await said('tenant:acme')).toBe('deny');
    expect((await service.getRate('login')).override).toBeUndefined();
    expect(await service.rollback(0)).toBe(true);
    expect((await service.listEntries()).entries).toEqual([]);
    expect(await said('tenant:acme')).toBeUndefined();
  });

  it.each<[string, unknown, string | RegExp]>([
    [
      'no entry',
      undefined,
      "expected one of { ip: '10.0.0.0/8' }, { identity: 'tenant:acme' } and { pattern: 'tenant:*' }, received undefined",
    ],
    [
      'an empty one',
      {},
      "expected one of { ip: '10.0.0.0/8' }, { identity: 'tenant:acme' } and { pattern: 'tenant:*' }, received {}",
    ],
    [
      'a text',
      '10.0.0.1',
      "expected one of { ip: '10.0.0.0/8' }, { identity: 'tenant:acme' } and { pattern: 'tenant:*' }, received '10.0.0.1'",
    ],
    ['two in one', { ip: '10.0.0.1', identity: 'a' }, 'expected one of'],
    [
      'an unknown one',
      { user: '42' },
      "expected one of { ip: '10.0.0.0/8' }, { identity: 'tenant:acme' } and { pattern: 'tenant:*' }, received { user: '42' }",
    ],
    ['one with an option', { ip: '10.0.0.1', limit: 'login' }, 'expected one of'],
    [
      'no network',
      { ip: '10.0.0.0/33' },
      /ip: expected an IP address, or a network in CIDR.+, received '10\.0\.0\.0\/33'/,
    ],
    ['host bits', { ip: '10.0.0.1/8' }, "expected the network '10.0.0.0/8' or the address '10.0.0.1'"],
    ['an empty address', { ip: '' }, /ip: expected .+, received ''/],
    ['an empty identity', { identity: '' }, /identity: expected the key of one identity.+, received ''/],
    ['a star in an identity', { identity: 'tenant:*' }, /identity: expected the key of one.+, received 'tenant:\*'/],
    ['a pattern for all', { pattern: '*' }, /pattern: expected the beginning of keys.+, received '\*'/],
    ['a pattern without a star', { pattern: 'tenant:' }, /pattern: expected .+, received 'tenant:'/],
    ['a star in the middle', { pattern: 'a*b*' }, /pattern: expected .+, received 'a\*b\*'/],
    ['a long pattern', { pattern: `${'a'.repeat(512)}*` }, 'of 2 to 512 characters'],
    ['half a character', { identity: '\u{d800}' }, 'expected the key of one identity'],
    ['a polluted one', JSON.parse('{"__proto__": {"ip": "10.0.0.1"}}'), 'expected one of'],
  ])('refuse an entry that is %s, and change nothing', async (_what, entry, message) => {
    for (const method of ['allow', 'deny', 'unlist'] as const) {
      const call = app.service[method](entry as ListEntry);
      await expect(call).rejects.toThrow(RateLimitConfigError);
      await expect(call).rejects.toThrow(new RegExp(`^LimiterService\\.${method}(: |\\.)`));
      await expect(call).rejects.toThrow(message);
    }
    expect(await app.service.changes()).toEqual([]);
  });

  it.each<[string, () => Promise<unknown>, string | RegExp]>([
    ['a limit', () => app.service.deny(ACME, { limit: 'nope' }), "unknown limit 'nope'"],
    ['no limit', () => app.service.deny(ACME, { limit: '' }), "unknown limit ''"],
    ['a duration', () => app.service.allow(ACME, { expiresIn: '2y' }), /expiresIn: expected .+, received '2y'/],
    ['a reason', () => app.service.allow(ACME, { reason: '' }), /reason: expected .+, received ''/],
    ['an author', () => app.service.unlist(ACME, { by: 7 as never }), /by: expected .+, received 7/],
    ['an option', () => app.service.deny(ACME, { key: 'a' } as never), "unknown option 'key'"],
    ['an end', () => app.service.unlist(ACME, { expiresIn: 1 } as never), "unknown option 'expiresIn'"],
    ['no options', () => app.service.deny(ACME, null as never), 'expected an object of options, received null'],
    [
      'an address',
      () => app.service.listEntries({ ip: '10.0.0.0/8' }),
      "ip: expected an IP address such as '203.0.113.7', received '10.0.0.0/8'",
    ],
    ['a key', () => app.service.listEntries({ key: '' }), "key: expected a string that is not empty, received ''"],
    [
      'a limit to ask of',
      () => app.service.listEntries({ limit: 'nope' }),
      "unknown limit 'nope', expected a limit of 'define', 'forFeature' or 'limits' with a 'name': 'hourly', 'login', 'window', 'jobs', 'tried'",
    ],
    ['a cursor', () => app.service.listEntries({ cursor: 'x' }), "cursor: expected the 'next' of a page, received 'x'"],
    [
      'a count',
      () => app.service.listEntries({ count: 1001 }),
      'count: expected a whole number >= 1 and <= 1000, received 1001',
    ],
    [
      'a list',
      () => app.service.listEntries({ list: 'block' as never }),
      "list: expected one of allow, deny, received 'block'",
    ],
  ])('refuse %s that is wrong', async (_what, call, message) => {
    await expect(call()).rejects.toThrow(RateLimitConfigError);
    await expect(call()).rejects.toThrow(message);
    expect(await app.service.changes()).toEqual([]);
  });
});
