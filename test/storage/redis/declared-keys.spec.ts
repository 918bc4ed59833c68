import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { connectRedis } from '../../support/limits/stores.js';

const CHECKER = readFileSync('test/support/jest/declared-keys.lua', 'utf8');

describe('the checker of declared keys', () => {
  let redis: Redis;

  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => {
    redis?.disconnect();
  });

  const run = (script: string) => redis.eval(`${CHECKER}\n${script}`, 1, 'declared');

  it('knows every command of our scripts', () => {
    const paths = readdirSync('lua', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.lua'));
    const scripts = paths.map((path) => readFileSync(`lua/${path}`, 'utf8'));
    const called = scripts.flatMap((script) =>
      [...script.matchAll(/redis\.p?call\('(\w+)'/g)].map(([, name]) => name!),
    );
    expect(called.length).toBeGreaterThan(100);
    const unknown = [...new Set(called)].filter((name) => !new RegExp(`\\b${name.toUpperCase()}\\b`).test(CHECKER));
    expect(unknown).toEqual([]);
  });

  it('runs commands on declared keys', async () => {
    await expect(run("return redis.call('GET', KEYS[1])")).resolves.toBeNull();
    await expect(run("return redis.call('mget', KEYS[1], KEYS[1])")).resolves.toEqual([null, null]);
    await expect(run("return redis.call('OBJECT', 'ENCODING', KEYS[1])")).resolves.toBeNull();
    await expect(run("return #redis.call('TIME')")).resolves.toBe(2);
  });

  it.each([
    ["redis.call('GET', KEYS[1] .. ':more')", 'UNDECLARED key declared:more of GET'],
    ["redis.pcall('GET', KEYS[1] .. ':more')", 'UNDECLARED key declared:more of GET'],
    ["redis.call('MGET', KEYS[1], 'other')", 'UNDECLARED key other of MGET'],
    ["redis.call('OBJECT', 'ENCODING', 'other')", 'UNDECLARED key other of OBJECT'],
    ["redis.call('SORT', KEYS[1])", 'UNDECLARED the checker does not know SORT'],
  ])('fails %s', async (command, message) => {
    await expect(run(`return ${command}`)).rejects.toThrow(message);
  });
});
