import { afterEach, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { startCluster, startRedis, startSentinel, type RedisServer } from './redis-servers.js';

const cleanups: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const silent = <Client extends Redis | Cluster>(client: Client): Client => {
  client.on('error', () => {});
  // ioredis leaves a timer of 2 s behind when a closed client is disconnected again.
  cleanups.push(() => (client.status === 'end' ? undefined : client.disconnect()));
  return client;
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

async function expectAllGone(servers: readonly RedisServer[], stop: () => Promise<void>): Promise<void> {
  const pids = servers.map(({ pid }) => pid);
  expect(pids.filter(isAlive)).toEqual(pids);
  await stop();
  expect(pids.filter(isAlive)).toEqual([]);
}

describe('the shared server', () => {
  it('answers', async () => {
    const client = silent(new Redis(process.env.TEST_REDIS_URL ?? ''));
    expect(await client.ping()).toBe('PONG');
  });
});

describe('startRedis', () => {
  it('starts a server with the given arguments and ends it', async () => {
    const server = await startRedis({ args: ['--maxmemory', '3mb'] });
    cleanups.push(() => server.stop());
    const client = silent(new Redis(server.url));
    expect(await client.config('GET', 'maxmemory')).toEqual(['maxmemory', `${3 * 1024 * 1024}`]);
    await expectAllGone([server], () => server.stop());
  });

  it('pauses, resumes, kills and restarts on the same port', async () => {
    const server = await startRedis();
    cleanups.push(() => server.stop());
    const client = silent(new Redis(server.url, { commandTimeout: 100, retryStrategy: () => 20 }));
    await client.ping();
    server.pause();
    await expect(client.ping()).rejects.toThrow('timed out');
    server.resume();
    expect(await client.ping()).toBe('PONG');

    const { pid, port } = server;
    await server.kill();
    expect(isAlive(pid)).toBe(false);
    await server.start();
    expect(server.port).toBe(port);
    expect(server.pid).not.toBe(pid);
    const second = silent(new Redis(server.url));
    expect(await second.ping()).toBe('PONG');
  });

  it('ends a paused server', async () => {
    const server = await startRedis();
    server.pause();
    await expectAllGone([server], () => server.stop());
  });

  it('says what the server said when it does not start', async () => {
    await expect(startRedis({ args: ['--no-such-option', 'yes'] })).rejects.toThrow(/no-such-option/);
  });
});

describe('startCluster', () => {
  it('serves all slots from three masters', async () => {
    const cluster = await startCluster();
    cleanups.push(() => cluster.stop());
    const client = silent(new Cluster(cluster.nodes));
    for (let i = 0; i < 20; i++) {
      expect(await client.set(`key:${i}`, i)).toBe('OK');
      expect(await client.get(`key:${i}`)).toBe(`${i}`);
    }
    expect(client.nodes('master')).toHaveLength(3);
    expect(await cluster.masters()).toHaveLength(3);
    expect(cluster.nodes.every(({ port }) => port < 55_535)).toBe(true);
    client.disconnect();
    await expectAllGone(cluster.servers, () => cluster.stop());
  });
});

describe('startSentinel', () => {
  it('leads to the master', async () => {
    const sentinel = await startSentinel();
    cleanups.push(() => sentinel.stop());
    const client = silent(new Redis({ sentinels: sentinel.sentinels, name: sentinel.name }));
    expect(await client.set('key', 'value')).toBe('OK');
    expect(await client.info('server')).toContain(`tcp_port:${sentinel.master.port}`);
    client.disconnect();
    expect(sentinel.servers).toHaveLength(5);
    await expectAllGone(sentinel.servers, () => sentinel.stop());
  });
});
