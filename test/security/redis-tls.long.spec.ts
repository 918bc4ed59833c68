import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import type { RateLimitModuleOptions } from '../../lib/index.js';
import { RatesApp, until } from '../app/overrides/overrides-app.js';
import { type Certificate, selfSigned } from '../support/redis/certificate.js';
import { freePort } from '../support/processes/ports.mjs';
import { type RedisServer, startRedis } from '../support/redis/redis-servers.js';
import { freshPrefix } from '../support/limits/stores.js';
import { settingsOf } from '../support/nest/settings.js';

/** Every character of ASCII that can be typed, and some that are not of ASCII. */
const PASSWORD = `${Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).join('')}é🙂`;
const USER = 'app:one@example/%40#?&';

let logged: string[];
const apps: RatesApp[] = [];

async function start(redis: RateLimitModuleOptions['redis'], prefix = freshPrefix()): Promise<RatesApp> {
  const app = await RatesApp.start({ redis, prefix });
  apps.push(app);
  return app;
}

/** Counts, changes a rate on one instance, and sees it on another. */
async function use(redis: RateLimitModuleOptions['redis']): Promise<void> {
  const prefix = freshPrefix();
  const [one, two] = [await start(redis, prefix), await start(redis, prefix)];
  expect(await one.service.for('login').consume('user:1')).toMatchObject({ remaining: 9, source: 'redis' });
  expect(await two.service.for('login').consume('user:1')).toMatchObject({ remaining: 8, source: 'redis' });
  await one.service.setRate('login', { rate: 20 });
  await until(() => two.quota(), 20);
  expect(logged).toEqual([]);
}

beforeEach(() => {
  logged = [];
  const remember = (...message: unknown[]) => void logged.push(message.join(' '));
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(remember);
  jest.spyOn(Logger.prototype, 'error').mockImplementation(remember);
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  jest.restoreAllMocks();
});

describe('over TLS', () => {
  let server: RedisServer;
  let strict: RedisServer;
  let port: number;
  let strictPort: number;
  let folder: string;
  let own: Certificate;
  let client: Certificate;

  beforeAll(async () => {
    [own, client] = [selfSigned('server'), selfSigned('client')];
    folder = await mkdtemp(join(tmpdir(), 'sluice-tls-'));
    const files = { cert: own.cert, key: own.key, clients: client.cert };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const path = (name: keyof typeof files) => join(folder, name);
    const authorities = [
      '--tls-cert-file',
      path('cert'),
      '--tls-key-file',
      path('key'),
      '--tls-ca-cert-file',
      path('clients'),
    ];
    const args = (tlsPort: number, clients: 'no' | 'yes') =>
      ['--tls-port', `${tlsPort}`, '--tls-auth-clients', clients].concat(authorities);
    [port, strictPort] = [await freePort(), await freePort()];
    server = await startRedis({ args: args(port, 'no') });
    strict = await startRedis({ args: args(strictPort, 'yes') });
  });
  afterAll(async () => {
    await server?.stop();
    await strict?.stop();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  it('everything works, given the authority', () => use({ host: '127.0.0.1', port, tls: { ca: own.cert } }));

  it('everything works with a certificate of the client', async () => {
    const options = { host: '127.0.0.1', port: strictPort };
    await use({ ...options, tls: { ca: own.cert, ...client } });
    const nameless = await start({ ...options, tls: { ca: own.cert } });
    expect((await nameless.service.for('login').consume('user:1')).source).toBe('fallback');
  });

  it('everything works with a password of all characters', async () => {
    const admin = new Redis(server.url);
    await admin.call('ACL', 'SETUSER', 'secured', 'on', `>${PASSWORD}`, 'allkeys', 'allchannels', '+@all');
    admin.disconnect();
    await use({ host: '127.0.0.1', port, username: 'secured', password: PASSWORD, tls: { ca: own.cert } });
  });

  it.each<[string, () => RateLimitModuleOptions['redis']]>([
    ['a URL', () => `rediss://127.0.0.1:${port}`],
    ['options', () => ({ host: '127.0.0.1', port, tls: {} })],
    ['the authority of somebody else', () => ({ host: '127.0.0.1', port, tls: { ca: client.cert } })],
  ])('a certificate that nobody vouches for is refused, given %s, and the log says so', async (_, redis) => {
    const app = await start(redis());
    expect((await app.service.for('login').consume('user:1')).source).toBe('fallback');
    expect(logged).toEqual([expect.stringMatching(/^the store failed, so .*self[- ]signed certificate/)]);
  });

  it('a server that speaks no TLS is not spoken to', async () => {
    const app = await start(`rediss://127.0.0.1:${server.port}`);
    expect((await app.service.for('login').consume('user:1')).source).toBe('fallback');
  });
});

describe('a password', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
    const admin = new Redis(server.url);
    await admin.call('ACL', 'SETUSER', USER, 'on', `>${PASSWORD}`, 'allkeys', 'allchannels', '+@all');
    await admin.call('ACL', 'SETUSER', 'default', 'resetpass', `>${PASSWORD}`);
    admin.disconnect();
  });
  afterAll(async () => {
    await server?.stop();
  });

  const at = () => `${server.host}:${server.port}`;
  const [user, password] = [encodeURIComponent(USER), encodeURIComponent(PASSWORD)];

  it.each<[string, () => RateLimitModuleOptions['redis']]>([
    ['in a URL', () => `redis://:${password}@${at()}`],
    ['in a URL with a user', () => `redis://${user}:${password}@${at()}/0`],
    ['in options', () => ({ host: server.host, port: server.port, username: USER, password: PASSWORD })],
  ])('of all characters works %s', (_, redis) => use(redis()));

  it.each<[string, () => RateLimitModuleOptions['redis']]>([
    ['of nobody', () => `redis://:s3cret-one@${at()}`],
    ['of somebody else', () => ({ host: server.host, port: server.port, username: USER, password: 's3cret-two' })],
    ['that is missing', () => `redis://${at()}`],
  ])('%s is told of once, and not shown', async (_, redis) => {
    const app = await start(redis());
    expect((await app.service.for('login').consume('user:1')).source).toBe('fallback');
    await expect(app.service.setRate('login', { rate: 5 })).rejects.toThrow(/^(?!.*s3cret)/s);
    expect(logged).toEqual([expect.stringMatching(/^the store failed, so .*(WRONGPASS|NOAUTH)/)]);
    expect(logged.join('\n')).not.toContain('s3cret');
  });

  it.each<[string, unknown]>([
    ['another protocol', 'redi://user:s3cret@host:6379'],
    ['no protocol', 'user:s3cret@host:6379'],
    ['a slash in it', 'redis//user:s3c/s3cret@host'],
    ['an @ and a slash in it', 'redi://user:p@s3cret/s3cret@host'],
    ['an @ in it', 'http://user:p@s3cret@host'],
    ['a line break', 'x://user:\ns3cret@host'],
    ['a query', 'http://host?password=s3cret&db=1'],
    ['an object', { url: 'redis://user:s3cret@host' }],
    ['an object in an object', { options: { password: 's3cret' } }],
    ['a list', ['redis://user:s3cret@host']],
    ['nodes that are no list', { nodes: 'redis://user:s3cret@host' }],
  ])('is not shown in the error of a wrong option with %s', (_, redis) => {
    expect(() => settingsOf({ redis: redis as never })).toThrow(/^RateLimitModule\.redis: expected (?!.*s3cret)/s);
  });
});
