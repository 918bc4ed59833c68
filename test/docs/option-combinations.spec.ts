import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { type LimitDefinition, RateLimitModule } from '../../lib/index.js';
import { NestFactory } from '@nestjs/core';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

/** What `docs/reference/option-combinations.md` says about options that exclude each other is true. */
const page = readFileSync(join(PACKAGE_FOLDER, 'docs/reference/option-combinations.md'), 'utf8');

const PARAMETERS: Readonly<Record<string, object>> = {
  'fixed-window': { rate: 100, interval: '1m' },
  'calendar-window': { rate: 100, period: 'day' },
  budget: { limit: 100, period: 'day' },
  'sliding-window': { rate: 100, interval: '1m' },
  'sliding-log': { rate: 100, interval: '1m' },
  'token-bucket': { rate: 100, interval: '1m' },
  gcra: { rate: 100, interval: '1m' },
  'leaky-bucket': { rate: 100, interval: '1m' },
  concurrency: { limit: 100, ttl: '1m' },
  adaptive: { scope: 'instance' },
};

const OPTIONS: Readonly<Record<string, object>> = {
  blockFor: { blockFor: '1h' },
  strike: { blockFor: '1h', strike: true },
  count: { count: 'failed' },
  'cost: { by, per }': { cost: { by: 'bytes', per: '1kB' } },
  countRefused: { countRefused: true },
  reserveFor: { reserveFor: { critical: 0.2 } },
  prefetch: { prefetch: { units: 10, ttl: '10s' } },
  share: { share: { by: 'user' } },
  usage: { usage: '30d' },
  within: { within: 'root' },
  ceiling: { within: 'root', ceiling: 120 },
  candidate: { candidate: { rate: 50 } },
  replicas: { replicas: 1 },
  hold: { hold: '5m' },
  onLapse: { hold: '5m', onLapse: 'charge' },
  warmUp: { warmUp: { from: 0.5, for: '10m' } },
  anchor: { anchor: '2026-01-15' },
  rollover: { rollover: 0.5 },
  credits: { credits: true },
  "scope: 'instance'": { scope: 'instance' },
};

const rows = (heading: string): [names: string[], text: string][] =>
  page
    .split(/^## /m)
    .find((section) => section.startsWith(heading))!
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, names, text]) => [codeOf(names!), text!]);

function codeOf(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);
}

async function starts(algo: string, ...options: string[]): Promise<boolean> {
  const limit: object = Object.assign(
    { algo, key: 'global' },
    PARAMETERS[algo],
    ...options.map((name) => OPTIONS[name]),
  );
  if ('candidate' in limit && !('rate' in limit)) Object.assign(limit, { candidate: { limit: 50 } });
  const root = { algo: 'token-bucket', rate: 1_000, interval: '1m', key: 'global' } as const;
  // A measured cost has to be measured at each level.
  const cost = 'cost' in limit ? { cost: limit.cost as LimitDefinition['cost'] } : {};
  const define = { ...('within' in limit ? { root: { ...root, ...cost } } : {}), limit: limit as LimitDefinition };
  try {
    const module = RateLimitModule.forRoot({ define });
    const app = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
    await app.close();
    return true;
  } catch (error) {
    expect(error).toMatchObject({ name: 'RateLimitConfigError' });
    return false;
  }
}

const algorithmsOf = (text: string): string[] => {
  if (!text.startsWith('all but')) return codeOf(text);
  const left = codeOf(text);
  return Object.keys(PARAMETERS).filter((algo) => !left.includes(algo));
};

const takers = new Map(
  rows('Options and algorithms').flatMap(([names, text]) => names.map((name) => [name, algorithmsOf(text)] as const)),
);

describe('options and algorithms', () => {
  it.each([...takers])('%s goes with %j, and with no others', async (option, algorithms) => {
    const taking: string[] = [];
    for (const algo of Object.keys(PARAMETERS)) if (await starts(algo, option)) taking.push(algo);
    expect(taking.toSorted()).toEqual([...algorithms].toSorted());
  });
});

describe('options and options', () => {
  const excluded = new Map(rows('Options and options').map(([[name], text]) => [name!, codeOf(text)]));
  const names = Object.keys(OPTIONS).filter((name) => !['strike', 'onLapse'].includes(name));
  const pairs = names.flatMap((one, index) => names.slice(index + 1).map((other) => [one, other] as const));
  /** An algorithm that takes both. */
  const algorithmOf = (one: string, other: string) =>
    Object.keys(PARAMETERS).find((algo) =>
      [one, other].every((name) => (takers.get(name) ?? Object.keys(PARAMETERS)).includes(algo) && algo !== 'adaptive'),
    );
  const excludes = (one: string, other: string): boolean => {
    // What needs another option excludes what that one excludes.
    const all = (name: string) => [name, ...(name === 'ceiling' ? ['within'] : [])];
    return all(one).some((first) =>
      all(other).some((second) => excluded.get(first)?.includes(second) || excluded.get(second)?.includes(first)),
    );
  };

  it.each(pairs)('%s and %s', async (one, other) => {
    const algo = algorithmOf(one, other);
    if (algo === undefined) return;
    expect(await starts(algo, one, other)).toBe(!excludes(one, other));
  });
});
