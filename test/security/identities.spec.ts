import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import {
  ipIdentity,
  type LimitDefinition,
  type LimitKey,
  MemoryStore,
  RateLimit,
  RateLimitModule,
  RedisStore,
  type RequestLike,
} from '../../lib/index.js';
import { CompiledLimit } from '../../lib/testing/store/index.js';
import { ProxyWarning } from '../../lib/app/key-resolvers/proxy-warning.js';
import { boundedIdentity } from '../../lib/engine/limits/identity.js';
import { type AppOptions, frameworks, HttpApp } from '../e2e/http-app.js';
import { propertyRuns } from '../support/limits/property-runs.js';
import { withOwnRedis } from '../support/redis/own-redis.js';
import type { RedisServer } from '../support/redis/redis-servers.js';
import { ask, compile, connectRedis, freshPrefix, keyOf, ManualClock, storeKinds } from '../support/limits/stores.js';
import { PATIENCE } from '../support/redis/patience.mjs';

const twice: LimitDefinition = { name: 'twice', algo: 'fixed-window', rate: 2, interval: '1m' };

/** Trusts a proxy of this machine, and no other. */
const isLocal = (address: string | undefined) => address === '127.0.0.1';

/** What proxies and networks of all kinds name a client in. */
const FORGED = [
  'x-forwarded-for',
  'forwarded',
  'x-real-ip',
  'x-client-ip',
  'cf-connecting-ip',
  'true-client-ip',
  'fastly-client-ip',
  'x-cluster-client-ip',
  'client-ip',
];

describe.each(frameworks)('over %s', (framework) => {
  let app: HttpApp | undefined;
  let warnings: string[];

  async function start(definition: LimitDefinition, more: Partial<AppOptions> = {}): Promise<HttpApp> {
    @Controller()
    class ListController {
      @Get()
      @RateLimit(definition)
      list() {}
    }
    app = await HttpApp.start(framework, { controllers: [ListController], ...more });
    return app;
  }

  beforeEach(() => {
    warnings = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: unknown) => void warnings.push(String(message)));
  });

  afterEach(async () => {
    await app?.close();
    app = undefined;
    jest.restoreAllMocks();
  });

  it('no header makes a client another one', async () => {
    const { get, store } = bound(await start(twice));
    const statuses: number[] = [];
    for (const [index, name] of FORGED.entries())
      statuses.push((await get('/', { [name]: `203.0.113.${index}` })).status);
    expect(statuses).toEqual([200, 200, ...FORGED.slice(2).map(() => 429)]);
    expect(store.size).toBe(1);
  });

  describe('a proxy that is not trusted', () => {
    const setting = framework === 'express' ? "app.set('trust proxy', ...)" : 'new FastifyAdapter({ trustProxy: ... })';

    it.each<[string, LimitKey]>([
      ['a limit by ip', 'ip'],
      ['a limit that counts by ip whom it cannot know otherwise', 'user'],
    ])('is warned of once, with what to set, where there is %s', async (_, key) => {
      const { statuses } = bound(await start({ ...twice, key }));
      await statuses(1, '/');
      expect(warnings).toEqual([]);
      await statuses(3, '/', { 'x-forwarded-for': '203.0.113.7' });
      expect(warnings).toEqual([expect.stringContaining(`Name the proxies to trust with ${setting}.`)]);
    });

    it.each<[string, LimitDefinition]>([
      ['no limit is by ip', { ...twice, key: 'global' }],
      ['a limit by user knows the user', { ...twice, key: () => 'user:1' }],
      ['a limit leaves alone who has no key', { ...twice, key: 'user', onMissingKey: 'skip' }],
    ])('is not warned of where %s', async (_, definition) => {
      const { statuses } = bound(await start(definition));
      await statuses(1, '/', { 'x-forwarded-for': '203.0.113.7' });
      expect(warnings).toEqual([]);
    });

    it('is warned of once if Fastify is given a number of proxies, which it ignores', async () => {
      const { statuses } = bound(await start(twice, { trustProxy: 1 }));
      expect(warnings).toEqual([]);
      await statuses(3, '/', { 'x-forwarded-for': '203.0.113.7' });
      const number =
        'Fastify was given a number of proxies to trust (1) but trusts none of them, so limits by address count the address that connects: behind a proxy, all its clients together. Name the proxies to trust by their addresses with new FastifyAdapter({ trustProxy: ... })';
      expect(warnings).toEqual(framework === 'fastify' ? [expect.stringContaining(number)] : []);
    });

    it('is not there if the app trusts it', async () => {
      const { statuses } = bound(await start(twice, { trustProxy: isLocal }));
      await statuses(1, '/', { 'x-forwarded-for': '203.0.113.7' });
      expect(warnings).toEqual([]);
    });
  });

  describe('a framework that believes every client', () => {
    const CHOOSES =
      /^the framework trusts X-Forwarded-For from every client, .* limit 'twice' counts\. Set .* to the addresses of the proxies/;

    it.each<[string, LimitDefinition, NonNullable<AppOptions['trustProxy']>]>([
      ['a limit by ip', twice, true],
      ['a limit by ip for strangers', { ...twice, key: 'user' }, true],
      ['a function that trusts all', twice, () => true],
    ])('is warned of once, at start-up, with %s', async (_, definition, trustProxy) => {
      const { statuses } = bound(await start(definition, { trustProxy }));
      expect(warnings).toEqual([expect.stringMatching(CHOOSES)]);
      await statuses(1, '/', { 'x-forwarded-for': '203.0.113.7' });
      expect(warnings).toHaveLength(1);
    });

    it.each<[string, LimitDefinition, NonNullable<AppOptions['trustProxy']>]>([
      ['no limit by address', { ...twice, key: 'global' }, true],
      ['only limits of those who have a key', { ...twice, key: 'user', onMissingKey: 'skip' }, true],
      ['a proxy it knows', twice, isLocal],
      ['a number of proxies', twice, 2],
    ])('is not warned of with %s', async (_, definition, trustProxy) => {
      bound(await start(definition, { trustProxy }));
      expect(warnings).toEqual([]);
    });
  });

  it('all addresses of a /64 are one client', async () => {
    const { get, store } = bound(await start(twice, { trustProxy: true }));
    const statuses: number[] = [];
    for (let rotation = 0; rotation < 20; rotation++) {
      const address = `2001:db8:1:2:${rotation.toString(16)}:${(rotation * 3001).toString(16)}::${rotation + 1}`;
      statuses.push((await get('/', { 'x-forwarded-for': address })).status);
    }
    expect(statuses).toEqual([200, 200, ...Array.from({ length: 18 }, () => 429)]);
    expect(store.size).toBe(1);
    expect((await get('/', { 'x-forwarded-for': '2001:db8:1:3::1' })).status).toBe(200);
  });

  it('methods and limits whose names only differ in where a colon stands have counters of their own', async () => {
    @Controller()
    class ColonController {
      @Get('one')
      @RateLimit({ name: 'b:c', algo: 'fixed-window', rate: 1, interval: '1m' })
      a() {}

      @Get('two')
      @RateLimit({ name: 'c', algo: 'fixed-window', rate: 1, interval: '1m' })
      ['a:b']() {}
    }
    app = await HttpApp.start(framework, { controllers: [ColonController] });
    expect([(await app.get('/one')).status, (await app.get('/two')).status]).toEqual([200, 200]);
    expect([(await app.get('/one')).status, (await app.get('/two')).status]).toEqual([429, 429]);
  });
});

function bound(app: HttpApp) {
  return { get: app.get.bind(app), statuses: app.statuses.bind(app), store: app.store };
}

/** A request that carries the header, and counts how often it is looked at. */
function request(more: object): RequestLike & { readonly reads: number } {
  let reads = 0;
  return {
    ...more,
    get reads() {
      return reads;
    },
    get headers() {
      reads++;
      return { 'x-forwarded-for': '203.0.113.7' };
    },
  };
}

describe('the look for an untrusted proxy', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each<[string, object]>([
    ['it has warned', { app: { get: () => false } }],
    ['a proxy is trusted', { server: {}, ips: ['127.0.0.1'] }],
  ])('ends when %s', (_, more) => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const warning = new ProxyWarning();
    const seen = request(more);
    for (let count = 0; count < 5; count++) warning.look(seen);
    expect(seen.reads).toBe(1);
  });

  it('says nothing of what is neither Express nor Fastify', () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const warning = new ProxyWarning();
    for (const each of [
      undefined,
      {},
      { headers: {} },
      request({}),
      request({ app: {} }),
      request({ app: { get: 1 } }),
    ]) {
      warning.look(each);
    }
    expect(warn).not.toHaveBeenCalled();
  });
});

const written = (parts: readonly number[]) => parts.map((each) => each.toString(16)).join(':');

describe('addresses', () => {
  const part = fc.integer({ min: 0, max: 0xffff });

  it('of one /64 are one identity, and those of another are not', () => {
    const network = fc.tuple(part, part, part, part);
    const host = fc.tuple(part, part, part, part);
    fc.assert(
      fc.property(network, network, host, host, ([, ...one], [, ...two], hostOne, hostTwo) => {
        // None of them is an IPv4 address in IPv6's clothes.
        const identify = (net: readonly number[], rest: readonly number[]) =>
          ipIdentity(written([0x2a00, ...net, ...rest]), 64);
        expect(identify(one, hostOne)).toBe(identify(one, hostTwo));
        expect(identify(one, hostOne) === identify(two, hostTwo)).toBe(written(one) === written(two));
      }),
    );
  });
});

/** Characters that separate, escape, or are written in two ways. */
const pieces = [
  'a',
  'b',
  ':',
  '{',
  '}',
  '%',
  '%3A',
  '#',
  '\n',
  '\r',
  '\0',
  '_',
  'é',
  'e\u0301',
  '\uFB01',
  'fi',
  '\uD83D',
  '\uDC00',
  '🙂',
  '__proto__',
];
const text = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
const identityText = fc.oneof(
  text,
  fc.tuple(text, fc.constantFrom('x'.repeat(60), 'x'.repeat(300))).map((parts) => parts.join('')),
);
const nameText = text.filter((name) => /^[\x20-\x7e]+$/.test(name));
const counter = fc.record({
  namespace: fc.oneof(fc.constant(''), text),
  name: nameText,
  algo: fc.constantFrom('fixed-window' as const, 'gcra' as const),
  identity: identityText,
});

describe('keys', () => {
  it('of two counters are never the same, whatever their names and identities hold', () => {
    const keys = ({ namespace, name, algo, identity }: typeof counter extends fc.Arbitrary<infer T> ? T : never) => {
      const limit = new CompiledLimit({ algo, rate: 1, interval: '1h' }, { location: 'test', namespace, name });
      return [keyOf('sluice', { limit, identity }), limit.id + boundedIdentity(identity)];
    };
    fc.assert(
      fc.property(counter, counter, (one, two) => {
        const same = JSON.stringify(one) === JSON.stringify(two);
        const [ofOne, ofTwo] = [keys(one), keys(two)];
        // A key on Redis is UTF-8, which knows no half of a pair.
        expect(Buffer.from(ofOne[0]!).equals(Buffer.from(ofTwo[0]!))).toBe(same);
        expect(ofOne[1] === ofTwo[1]).toBe(same);
      }),
      { numRuns: propertyRuns(5000) },
    );
  });

  it('are never those of another part of the library', () => {
    const taken = new Set(['sluice:rates', 'sluice:given-back']);
    fc.assert(
      fc.property(counter, ({ namespace, name, algo, identity }) => {
        const limit = new CompiledLimit({ algo, rate: 1, interval: '1h' }, { location: 'test', namespace, name });
        expect(taken.has(keyOf('sluice', { limit, identity }))).toBe(false);
      }),
    );
  });
});

describe.each(Object.keys(storeKinds))('on %s', (kind) => {
  let redis: Redis;

  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(async () => {
    await redis.quit();
  });

  it('identities that look alike have counters of their own', async () => {
    const store = storeKinds[kind]!(new ManualClock(), redis);
    const limits = ['c', 'b:c', 'a:b:c', '__proto__', 'constructor'].map((name) =>
      compile({ algo: 'fixed-window', rate: 1, interval: '1h' }, name),
    );
    const identities = [
      'a',
      'a:b',
      'a:',
      ':a',
      '{a}',
      'a}',
      '{',
      '__proto__',
      'constructor',
      'toString',
      'é',
      'e\u0301',
      '\uFB01',
      'fi',
    ].concat([
      'x'.repeat(64),
      'x'.repeat(65),
      `#${'x'.repeat(43)}`,
      'A',
      'ａ',
      ' a',
      'a ',
      'a\0',
      '\uD83D',
      '\uD83E',
      '\uFFFD',
    ]);
    for (const limit of limits) {
      for (const allowed of [true, false]) {
        const answers = await Promise.all(identities.map((identity) => ask(store, limit, { identity })));
        expect(answers.map((answer) => answer.allowed)).toEqual(identities.map(() => allowed));
      }
    }
    await store.close();
  });
});

describe('a Redis of the app', () => {
  let server: RedisServer;
  let redis: Redis;
  withOwnRedis((client, started) => {
    [redis, server] = [client, started];
  });

  it('is never sent the value of a header', async () => {
    const secret = 'Bearer top-secret-7c1f';
    @Controller()
    class SecretController {
      @Get()
      @RateLimit(
        { ...twice, key: 'header:authorization' },
        { algo: 'sliding-log', rate: 9, interval: '1h', key: 'header:x-api-key' },
        { algo: 'concurrency', limit: 9, ttl: '1m', key: 'header:cookie' },
      )
      list() {}
    }
    const sent: string[] = [];
    const monitor = await redis.monitor();
    monitor.on('monitor', (_: string, args: string[]) => sent.push(args.join(' ')));
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ redis: server.url, timeout: PATIENCE })],
      controllers: [SecretController],
    }).compile();
    const app = testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
    const headers = { authorization: secret, 'x-api-key': secret, cookie: secret, connection: 'close' };
    const answers: Response[] = [];
    for (let count = 0; count < 3; count++) answers.push(await fetch(await app.getUrl(), { headers }));
    await app.close();
    // What was sent before it has been heard of when this is.
    const heard = new Promise((resolve) =>
      monitor.on('monitor', (_: string, [name]: string[]) => name === 'echo' && resolve(name)),
    );
    await redis.echo('end');
    await heard;
    monitor.disconnect();
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(sent.filter((line) => line.startsWith('evalsha')).length).toBeGreaterThan(2);
    expect(sent.join('\n')).toContain('header:authorization:');
    expect([...sent, ...answers.flatMap((answer) => [...answer.headers.values()])].join('\n')).not.toContain(
      'top-secret',
    );
  });

  it('does as much for a check when it holds many counters as when it holds none', async () => {
    const algorithms = [
      compile({ algo: 'gcra', rate: 5, interval: '1h' }),
      compile({ algo: 'sliding-log', rate: 5, interval: '1h' }),
      compile({ algo: 'concurrency', limit: 5, ttl: '1h' }),
      compile({ algo: 'calendar-window', rate: 5, period: 'year' }),
    ];
    const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: 10_000 });
    let clients = 0;
    const newcomers = async (count: number) => {
      await redis.config('RESETSTAT');
      for (let index = 0; index < count; index++) {
        const identity = `user:${clients++}`;
        await store.check([{ entries: algorithms.map((limit) => ({ limit, identity, cost: 1 })) }]);
      }
      return commands(await redis.info('commandstats'));
    };
    await redis.flushall();
    const first = await newcomers(50);
    const flood = Array.from({ length: 20_000 }, (_, index) => ({
      entries: [{ limit: algorithms[index % 4]!, identity: `flood:${index}`, cost: 1 }],
    }));
    await store.check(flood);
    expect(await redis.dbsize()).toBeGreaterThan(20_000);
    expect(await newcomers(50)).toEqual(first);
    expect(first).toMatchObject({ evalsha: 50, mget: 50 });
    for (const slow of ['keys', 'scan', 'flushall', 'sort', 'hgetall']) expect(first).not.toHaveProperty(slow);
  });
});

/** How often each command ran, without those that look. */
function commands(info: string): Record<string, number> {
  const all = [...info.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(
    ([, name, calls]) => [name!, Number(calls)] as const,
  );
  return Object.fromEntries(all.filter(([name]) => !/^(info|config)/.test(name)));
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

describe('a flood of new identities', () => {
  it('takes no more memory in process than so many short ones, however long they are', async () => {
    const maxKeys = 5000;
    const store = new MemoryStore({ maxKeys, clock: new ManualClock().now });
    const limit = compile({ algo: 'gcra', rate: 5, interval: '1h' });
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < 2 * maxKeys; index++) {
      await ask(store, limit, { identity: `${index}:${Buffer.alloc(10_000, 97).toString('latin1')}` });
    }
    collectGarbage();
    expect(store.size).toBe(maxKeys);
    // 50 MB if it kept them as they came.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
    await store.close();
  });
});
