import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { RedisStore } from '../../../lib/index.js';
import type { Connection, Server } from '../../../lib/storage/redis/connection.js';
import { createClient } from '../../../lib/storage/redis/client.js';
import { Script } from '../../../lib/storage/redis/script.js';
import { nodeRedis, openClient } from '../../support/redis/node-redis.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { type Route, SpreadProxy, spreadHashes } from '../../support/redis/spread-proxy.js';
import { ask, compile, freshPrefix } from '../../support/limits/stores.js';
import { variants } from '../../support/tier.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const QUOTA = 1000;
/** Nothing comes back while a test runs. */
const limit = compile({ algo: 'fixed-window', rate: QUOTA, interval: '1d' }, 'counted');
const identity = 'user:1';

type Client = ConstructorParameters<typeof RedisStore>[0];

/** Each client, and how it is ended. */
const clients: Record<string, (url: string) => Promise<{ client: Client; end: () => unknown }>> = {
  'the client that is made here': async (url) => {
    const client = (await createClient(url)) as Redis;
    client.on('error', () => undefined);
    return { client, end: () => client.disconnect() };
  },
  'an ioredis 6 that pipelines by itself': (url) => {
    const client = new Redis(url, { enableAutoPipelining: true });
    return Promise.resolve({ client, end: () => client.disconnect() });
  },
  'ioredis 5': (url) => {
    const client = new Redis5(url) as unknown as Redis;
    return Promise.resolve({ client, end: () => client.disconnect() });
  },
  'node-redis': async (url) => {
    const client = await openClient(nodeRedis['node-redis 6'], url);
    return { client, end: () => client.destroy() };
  },
};

let logged: string[];
beforeEach(() => {
  logged = [];
  const remember = (message: unknown) => void logged.push(String(message));
  for (const level of ['log', 'warn', 'error'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation(remember);
  }
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Checks one after the other, then many in one turn, then many turns at once; returns how many. */
async function askInAllWays(store: RedisStore): Promise<number> {
  const decisions = [await ask(store, limit, { identity }), await ask(store, limit, { identity })];
  decisions.push(...(await Promise.all(Array.from({ length: 20 }, () => ask(store, limit, { identity })))));
  const turns = Array.from({ length: 20 }, async (_, turn) => {
    for (let i = 0; i < turn; i++) await new Promise((resolve) => setImmediate(resolve));
    return ask(store, limit, { identity });
  });
  decisions.push(...(await Promise.all(turns)));
  expect(decisions.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
  return decisions.length;
}

describe('a Redis whose user', () => {
  let server: RedisServer;
  let admin: Redis;
  let users = 0;
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });
  beforeEach(() => admin.script('FLUSH'));

  async function urlWithout(...rights: readonly string[]): Promise<string> {
    const name = `user${++users}`;
    await admin.call('ACL', 'SETUSER', name, 'on', '>secret', '~*', '&*', '+@all', ...rights.map((each) => `-${each}`));
    return `redis://${name}:secret@${server.host}:${server.port}`;
  }

  async function callsOf(command: string): Promise<number> {
    const stats = await admin.info('commandstats');
    return Number(new RegExp(`cmdstat_${command.replace('|', '\\|')}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  }

  describe.each(variants(Object.keys(clients)))('is one of %s and', (kind) => {
    it.each([
      ['may not load scripts', ['script|load']],
      ['may not use SCRIPT', ['script']],
      ['may not run scripts by their hash', ['evalsha']],
      ['may do neither', ['evalsha', 'script|load']],
    ])('%s is charged once for each check', async (_, rights) => {
      const { client, end } = await clients[kind]!(await urlWithout(...rights));
      const prefix = freshPrefix();
      const store = new RedisStore(client, { prefix, timeoutMs: PATIENCE_MS });
      const ofAdmin = new RedisStore(admin, { prefix, timeoutMs: PATIENCE_MS });
      try {
        await store.open();
        let asked = await askInAllWays(store);
        await admin.script('FLUSH');
        asked += await askInAllWays(store);
        expect(QUOTA - (await ask(ofAdmin, limit, { identity, peek: true })).remaining).toBe(asked);
      } finally {
        end();
      }
      const told = logged.filter((line) => line.includes('EVAL'));
      expect(told).toEqual([expect.stringMatching(/NOPERM/)]);
      expect(logged).toEqual(told);
    });
  });

  it('may not load scripts sends the script once, and then its hash', async () => {
    const { client, end } = await clients['the client that is made here']!(await urlWithout('script|load'));
    const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    await store.open();
    await ask(store, limit, { identity });
    const [evals, hashes] = [await callsOf('eval'), await callsOf('evalsha')];
    for (let i = 0; i < 10; i++) await ask(store, limit, { identity });
    end();
    expect(await callsOf('eval')).toBe(evals);
    expect(await callsOf('evalsha')).toBe(hashes + 10);
  });

  it('may not run scripts by their hash is seldom asked to', async () => {
    const { client, end } = await clients['the client that is made here']!(await urlWithout('evalsha'));
    const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    await store.open();
    const failed = async () =>
      Number(/cmdstat_evalsha:.*rejected_calls=(\d+)/.exec(await admin.info('commandstats'))?.[1]);
    await ask(store, limit, { identity });
    const before = await failed();
    for (let i = 0; i < 50; i++) await ask(store, limit, { identity });
    end();
    expect(await failed()).toBe(before);
  });

  it.each([
    [['script|load', 'eval'], /NOPERM.*'script/],
    [['evalsha', 'eval'], /NOPERM.*'evalsha'/],
  ])('may send scripts in no way gets the error of the right that is documented: %s', async (rights, reason) => {
    const { client, end } = await clients['the client that is made here']!(await urlWithout(...rights));
    const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    if (rights.includes('script|load')) await expect(store.open()).rejects.toThrow(reason);
    await (client as unknown as Connection).connect().catch(() => undefined);
    await expect(ask(store, limit, { identity })).rejects.toThrow(reason);
    end();
  });
});

describe('a proxy in front of three servers', () => {
  let servers: RedisServer[];
  beforeAll(async () => {
    servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });

  const routes: Record<string, Route> = {
    'sends each EVALSHA to another one': spreadHashes(3),
    'sends each command to the next one': (() => {
      let next = 0;
      return () => next++ % 3;
    })(),
    'loads scripts where it runs none': (name) => (name === 'SCRIPT' ? 0 : 1),
    'keeps no script at all': (name) => (name === 'SCRIPT' || name === 'EVAL' ? 0 : 1),
  };

  it.each(
    Object.keys(routes).flatMap((route) =>
      variants(['the client that is made here', 'node-redis']).map((kind) => [route, kind]),
    ),
  )('that %s has each check of %s charged once', async (route, kind) => {
    const admins = servers.map(({ url }) => new Redis(url));
    for (const admin of admins) await admin.script('FLUSH');
    const proxy = await SpreadProxy.start(servers, routes[route]!);
    const prefix = freshPrefix();
    const { client, end } = await clients[kind]!(proxy.url);
    try {
      const store = new RedisStore(client, { prefix, timeoutMs: PATIENCE_MS });
      await store.open();
      let asked = 0;
      for (let round = 0; round < 3; round++) asked += await askInAllWays(store);
      const used = await Promise.all(
        admins.map(async (admin) => {
          const { remaining } = await ask(new RedisStore(admin, { prefix, timeoutMs: PATIENCE_MS }), limit, {
            identity,
            peek: true,
          });
          return QUOTA - remaining;
        }),
      );
      expect(used.reduce((sum, each) => sum + each, 0)).toBe(asked);
    } finally {
      end();
      await proxy.close();
      for (const admin of admins) admin.disconnect();
    }
  });
});

/** A server that says what it is told to. */
function serverThat(answers: {
  evalsha: () => Promise<unknown>;
  load?: () => Promise<unknown>;
  eval?: () => Promise<unknown>;
}) {
  const evalsha = jest.fn(answers.evalsha);
  const evaluate = jest.fn(answers.eval ?? (() => Promise.resolve('by eval')));
  const load = jest.fn(answers.load ?? (() => Promise.resolve('sha')));
  const client = { isCluster: false, options: {}, status: 'ready', evalsha, eval: evaluate, script: load };
  const script = new Script(client as unknown as Connection, 'return 1');
  const server = client as unknown as Server;
  const run = {
    run: (timeoutMs: number) => script.run([], [], timeoutMs),
    runOn: (timeoutMs: number) => script.runOn(server, [], [], timeoutMs, () => undefined),
  };
  return { run, evalsha, evaluate, load };
}

const failing = (message: string) => () => Promise.reject(new Error(message));

describe.each(['run', 'runOn'] as const)('a call of a script by %s', (how) => {
  it.each([
    "NOPERM this user has no permissions to run the 'evalsha' command",
    "NOPERM User app has no permissions to run the 'evalsha' command",
    "ERR unknown command 'EVALSHA', with args beginning with: 'a' '1'",
    'ERR unknown command `evalsha`, with args beginning with: `a`',
    'ERR EVALSHA is not allowed',
    'NOSCRIPT No matching script. Please use EVAL.',
  ])('that was not run is sent with the script: %s', async (refusal) => {
    const { run, evaluate } = serverThat({ evalsha: failing(refusal) });
    await expect(run[how](5000)).resolves.toBe('by eval');
    expect(evaluate).toHaveBeenCalledTimes(1);
  });

  it.each([
    'ERR user_script:1: something',
    "ERR The user executing the script can't run this command or subcommand script: 00, on @user_script:1.",
    'NOPERM No permissions to access a key',
    'ERR unknown command called from script script: 00, on @user_script:1.',
    'OOM command not allowed',
    'Connection is closed.',
    'Command timed out',
  ])('that may have been run is not sent again: %s', async (error) => {
    const { run, evaluate, load } = serverThat({ evalsha: failing(error) });
    await expect(run[how](5000)).rejects.toThrow(error);
    expect(evaluate).not.toHaveBeenCalled();
    expect(load).not.toHaveBeenCalled();
  });

  it.each(['LOADING Redis is loading', 'NOAUTH Authentication required.', 'Connection is closed.'])(
    'fails if the script cannot be loaded for now: %s',
    async (error) => {
      const { run, evaluate } = serverThat({ evalsha: failing('NOSCRIPT x'), load: failing(error) });
      await expect(run[how](5000)).rejects.toThrow(error);
      expect(evaluate).not.toHaveBeenCalled();
    },
  );

  it('is not sent with the script once its time is over', async () => {
    const { run, evaluate } = serverThat({
      evalsha: failing('NOSCRIPT x'),
      load: () => new Promise((_, reject) => void setTimeout(() => reject(new Error('NOPERM x')), 30)),
    });
    await expect(run[how](5)).rejects.toThrow('NOSCRIPT');
    expect(evaluate).not.toHaveBeenCalled();
  });

  it('tries the hash less often where it is never known', async () => {
    const { run, evalsha, evaluate } = serverThat({ evalsha: failing('NOSCRIPT x') });
    for (let i = 0; i < 500; i++) await run[how](5000);
    expect(evaluate).toHaveBeenCalledTimes(500);
    expect(evalsha.mock.calls.length).toBeLessThan(15);
  });
});
