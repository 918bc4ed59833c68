import { describe, expect, it } from '@jest/globals';
import { freePort } from '../support/processes/ports.mjs';
import { runHere } from './run-program.js';

const LIMIT = ['--limit', 'gcra:10/1h'];

describe('a Redis that cannot be reached', () => {
  const { host, hostname, port } = new URL(process.env['TEST_REDIS_URL'] as string);

  it.each([
    ['rates'],
    ['rates', 'set', 'api', 'rate=5', ...LIMIT],
    ['block', 'api', 'tenant:acme', ...LIMIT],
    ['deny', 'tenant:acme'],
    ['unlist', 'tenant:acme'],
    ['console'],
    ['explain', 'api', '--name', 'api', '--key', 'tenant:acme', ...LIMIT].filter((each, index) => index !== 1),
  ])('is named by %s, with the reason', async (...args) => {
    const free = await freePort();
    const { code, stdout, stderr } = await runHere([...args, '--redis', `redis://user:s3cret@127.0.0.1:${free}`]);
    expect(code).toBe(1);
    expect(stdout + stderr).toMatch(
      new RegExp(
        `Redis at 127.0.0.1:${free} is not connected: connect ECONNREFUSED 127.0.0.1:${free}, where nothing listens`,
      ),
    );
    expect(stdout + stderr).not.toContain('s3cret');
  });

  it.each<[string, string, RegExp]>([
    [
      'a wrong password',
      `redis://nobody:s3cret@${host}`,
      new RegExp(`^nestjs-sluice rates: Redis at ${hostname}:${port} is not connected: WRONGPASS `),
    ],
    [
      'an unknown host',
      'redis://:s3cret@no-host.invalid',
      /^nestjs-sluice rates: Redis at no-host\.invalid:6379 is not connected: getaddrinfo E/,
    ],
    [
      'TLS, which it does not speak',
      `rediss://${host}`,
      /is not connected: .*(?:otherwise write redis:|Write redis:\/\/ instead)/,
    ],
  ])('is named with %s', async (_, url, message) => {
    const { code, stderr } = await runHere(['rates', '--redis', url]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
    expect(stderr).not.toContain('s3cret');
  });
});

describe('a connection string of another form', () => {
  const AZURE = 'cache.example.net:6380,password=s3cret,ssl=True,abortConnect=False';

  it.each([
    [['rates', '--redis', AZURE], "expected the URL 'rediss://:<password>@cache.example.net:6380'"],
    [
      ['rates', '--redis', 'redis://localhost', '--home', AZURE],
      "expected the URL 'rediss://:<password>@cache.example.net:6380'",
    ],
    [['rates', AZURE], 'cache.example.net:6380,password=***'],
    [[AZURE], 'cache.example.net:6380,password=***'],
    [['redis://:s3cret@localhost'], 'redis://***@localhost'],
    [['console', 'redis://:s3cret@localhost'], 'redis://***@localhost'],
    [
      [
        'block',
        'redis://:s3cret@localhost',
        'x',
        '--redis',
        'redis://:s3cret@no-host.invalid',
        ...LIMIT,
        '--for',
        AZURE,
      ],
      '***',
    ],
  ])('is shown without its password by %j', async (args, shown) => {
    const { code, stdout, stderr } = await runHere(args);
    expect(code).toBe(2);
    expect(stderr).toContain(shown);
    expect(stdout + stderr).not.toContain('s3cret');
  });
});
