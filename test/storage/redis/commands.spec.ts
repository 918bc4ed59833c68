import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { connectRedis } from '../../support/limits/stores.js';
import { scripts } from '../../support/redis/scripts.js';

/** The oldest version that is promised. */
const OLDEST = [6, 2, 0] as const;

/** What a connection sends besides. */
const SENT = ['EVALSHA', 'EVAL', 'SCRIPT LOAD', 'DEL', 'PUBLISH', 'SUBSCRIBE', 'INFO'];

interface Call {
  readonly command: string;
  readonly tokens: readonly string[];
}

/** A node of what the server tells of its commands. */
type Docs = ReadonlyMap<string, unknown>;

/** What calls a command: its name comes first, but where it is handed on. */
const CALL = /(?:redis\.p?call|ask_holds)\((?!command\b)/;

/** Every command that a script calls, with the options that it gives it: the words among its own arguments. */
function callsOf(script: string): Call[] {
  return script.split(CALL).slice(1).map(argumentsOf);
}

function argumentsOf(text: string): Call {
  const words: string[] = [];
  let depth = 1;
  for (const [part, inQuotes] of text.matchAll(/'([^']*)'|[()]/g)) {
    if (part === '(') depth++;
    else if (part === ')') depth--;
    else if (depth === 1) words.push(inQuotes!);
    if (depth === 0) break;
  }
  const [command = '', ...rest] = words;
  return { command, tokens: rest.filter((word) => /^[A-Z]{2,}$/.test(word)) };
}

/** RESP3 has maps; RESP2 lists keys and values in turn. */
function toMap(value: unknown): Docs {
  if (value instanceof Map) return value as Docs;
  if (!Array.isArray(value)) return new Map(Object.entries(value as object));
  return new Map(
    Array.from({ length: value.length / 2 }, (_, index) => [String(value[2 * index]), value[2 * index + 1]]),
  );
}

/** Since when each of a command's options is known: since it is itself, or what it is a part of. */
function tokensOf(
  node: Docs,
  since = node.get('since') as string,
  found = new Map<string, string>(),
): Map<string, string> {
  const own = (node.get('since') as string | undefined) ?? since;
  const token = node.get('token');
  if (typeof token === 'string') found.set(token, own);
  const parts = [...((node.get('arguments') as unknown[] | undefined) ?? [])];
  for (const part of parts) tokensOf(toMap(part), own, found);
  return found;
}

function isKnownToTheOldest(since: string): boolean {
  const version = since.split('.').map(Number);
  const differing = OLDEST.findIndex((number, index) => number !== version[index]);
  return differing < 0 || version[differing]! < OLDEST[differing]!;
}

describe('what the scripts ask of Redis', () => {
  const calls = Object.values(scripts).flatMap(callsOf);
  let redis: Redis;

  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(async () => {
    await redis.quit();
  });

  it('is read completely by this test', () => {
    expect(calls.length).toBeGreaterThan(40);
    for (const { command } of calls) expect(command).toMatch(/^[A-Z]+$/);
    expect(calls).toContainEqual({ command: 'ZRANGEBYSCORE', tokens: ['WITHSCORES', 'LIMIT'] });
    expect(calls).toContainEqual({ command: 'SET', tokens: ['PX'] });
  });

  it('is nothing that 6.2 lacks, by what the server says since when it is there', async () => {
    const names = [...new Set([...calls.map(({ command }) => command), ...SENT.map((name) => name.split(' ')[0]!)])];
    const docs = toMap(await redis.call('COMMAND', 'DOCS', ...names));
    expect([...docs.keys()].map((name) => name.toUpperCase()).toSorted()).toEqual(names.toSorted());
    const lacking: string[] = [];
    for (const [name, node] of docs) {
      const since = toMap(node).get('since') as string;
      if (!isKnownToTheOldest(since)) lacking.push(`${name} (${since})`);
    }
    for (const { command, tokens } of calls) {
      const known = tokensOf(toMap(docs.get(command.toLowerCase())));
      for (const token of tokens) {
        const since = known.get(token);
        if (since === undefined || !isKnownToTheOldest(since)) lacking.push(`${command} ${token} (${since})`);
      }
    }
    expect(lacking).toEqual([]);
  });

  it('would be told of if 6.2 lacked it', async () => {
    const docs = toMap(await redis.call('COMMAND', 'DOCS', 'PEXPIRE', 'SINTERCARD'));
    expect(isKnownToTheOldest(toMap(docs.get('sintercard')).get('since') as string)).toBe(false);
    expect(isKnownToTheOldest(tokensOf(toMap(docs.get('pexpire'))).get('GT')!)).toBe(false);
    expect(['6.2.0', '6.0.9', '2.6.12', '1.0.0'].map(isKnownToTheOldest)).toEqual([true, true, true, true]);
    expect(['6.2.1', '7.0.0', '10.0.0'].map(isKnownToTheOldest)).toEqual([false, false, false]);
  });

  it('is only what Lua has had in Redis for long: no flags, and nothing of `redis` but `call` and `pcall`', () => {
    for (const script of Object.values(scripts)) {
      expect(script.startsWith('#!')).toBe(false);
      expect(script).not.toMatch(/redis\.call(?!\()/);
      expect(['redis.call', 'redis.pcall']).toEqual(
        expect.arrayContaining([...new Set(script.match(/\bredis\.\w+/g))]),
      );
      expect(script).not.toMatch(/\b(bit|os|server)\.\w+\(/);
    }
  });
});
