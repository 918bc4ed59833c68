import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Parameters } from '../../../../lib/engine/algorithms/algorithm.js';
import { algorithms } from '../../../../lib/engine/algorithms/index.js';
import { homeParameters, lifetimeOf } from '../../../../lib/storage/features/regions/terms.js';
import { Problems, showProblem } from '../../../../lib/app/policy/problems.js';
import { PlainValue } from '../../../../lib/app/policy/located.js';
import { readPolicy } from '../../../../lib/app/policy/read-policy.js';
import type { RateLimitModuleOptions } from '../../../../lib/index.js';
import { startUp } from '../../../e2e/http-app.js';
import { freePort } from '../../../support/processes/ports.mjs';

/** Options of the module, as JavaScript may write them. */
const options = (given: object) => given as RateLimitModuleOptions;

const messageOf = async (given: object): Promise<string> => {
  const error: unknown = await startUp(options(given)).catch((thrown: unknown) => thrown);
  return error === undefined ? 'none' : (error as Error).message;
};

describe('regions', () => {
  // Nobody answers there: an app starts without its servers.
  let nobody: string;
  beforeAll(async () => {
    nobody = `redis://127.0.0.1:${await freePort()}`;
  });

  const wanted = "expected { name, home } such as { name: 'us', home: 'rediss://eu.example.com' }";
  const wantedName = "expected 1 to 32 letters, digits or hyphens, such as 'us-east-1'";
  const wantedHome = `expected a URL such as 'redis://localhost:6379', ioredis options such as { host, port }, a connection of ioredis or node-redis`;

  it.each<[string, () => unknown, string]>([
    ['a text', () => 'us', `RateLimitModule.regions: ${wanted}, received 'us'`],
    ['null', () => null, `RateLimitModule.regions: ${wanted}, received null`],
    ['an array', () => [], `RateLimitModule.regions: ${wanted}, received []`],
    ['no name', () => ({ home: nobody }), `RateLimitModule.regions.name: ${wantedName}, received undefined`],
    ['an empty name', () => ({ name: '', home: nobody }), `RateLimitModule.regions.name: ${wantedName}, received ''`],
    [
      'a name with a colon',
      () => ({ name: 'us:1', home: nobody }),
      `RateLimitModule.regions.name: ${wantedName}, received 'us:1'`,
    ],
    [
      'a long name',
      () => ({ name: 'a'.repeat(33), home: nobody }),
      `RateLimitModule.regions.name: ${wantedName}, received '${'a'.repeat(33)}'`,
    ],
    ['no home', () => ({ name: 'us' }), `RateLimitModule.regions.home: ${wantedHome}, received undefined`],
    [
      'a home that is no URL',
      () => ({ name: 'us', home: 'eu.example.com' }),
      `RateLimitModule.regions.home: ${wantedHome}, received 'eu.example.com'`,
    ],
    ['an empty home', () => ({ name: 'us', home: '' }), `RateLimitModule.regions.home: ${wantedHome}, received ''`],
    [
      'another option',
      () => ({ name: 'us', home: nobody, homes: [] }),
      "RateLimitModule.regions: unknown option 'homes'. Did you mean 'home'?",
    ],
    [
      'a Cluster as home',
      () => ({ name: 'us', home: { nodes: [{ host: '127.0.0.1', port: 1 }] } }),
      'RateLimitModule.regions.home: expected one server or its Sentinels, received a Cluster: the home has to see all calls of the regions',
    ],
  ])('refuse %s', async (_, regions, message) => {
    expect(await messageOf({ redis: nobody, regions: regions() })).toBe(message);
  });

  it('want the Redis of the region', async () => {
    expect(await messageOf({ regions: { name: 'us', home: nobody } })).toBe(
      "RateLimitModule: option 'regions' needs 'redis', the Redis of this region: it stores the region's units",
    );
  });

  it('want a timeout in which units can be used', async () => {
    const regions = { name: 'us', home: nobody };
    expect(await messageOf({ redis: nobody, regions, timeout: '1s' })).toBe(
      "RateLimitModule.timeout: expected at most 250 ms with 'regions', received 1000 ms: a region must use its units in time",
    );
    expect(await messageOf({ redis: nobody, regions, timeout: 250 })).toBe('none');
  });

  const world = (more: object): object => ({
    redis: nobody,
    regions: { name: 'us', home: nobody },
    define: { api: { algo: 'sliding-window', rate: 100, interval: '1m', scope: 'world', ...more } },
  });
  it.each<[string, object]>([
    ['prefetch', { prefetch: { units: 5, ttl: 100 } }],
    ['share', { share: { by: 'header:x-tenant' } }],
    ['reserveFor', { reserveFor: { critical: 0.1 } }],
    ['within', { within: 'all' }],
    ['within', { algo: 'fixed-window', ceiling: 200, within: 'all' }],
    ['lends', { lends: 0.5 }],
    ['candidate', { candidate: { rate: 50 } }],
    ['blockFor', { blockFor: '1m' }],
    ['countRefused', { countRefused: true }],
    ['usage', { usage: '400d' }],
    ['replicas', { replicas: 1 }],
    ['hold', { hold: '1m' }],
    ['warmUp', { algo: 'gcra', warmUp: '1m' }],
    ['rollover', { algo: 'calendar-window', interval: undefined, period: 'month', rollover: 0.5 }],
    ['credits', { algo: 'calendar-window', interval: undefined, period: 'month', credits: true }],
  ])('do not go with %s', async (option, more) => {
    expect(await messageOf(world(more))).toBe(
      `define.api: options 'scope: world' and '${option}' exclude each other: ` +
        `units that a region holds are not subject to '${option}'`,
    );
  });

  it('do not go with functions of a date', async () => {
    const plan = { algo: 'calendar-window', interval: undefined, period: 'month', anchor: String };
    expect(await messageOf(world(plan))).toContain(
      "define.api: options 'scope: world' and 'anchor' exclude each other: units that a region holds are not subject to 'anchor'",
    );
  });

  it.each<[string, object]>([
    ['leaky-bucket', { algo: 'leaky-bucket' }],
    ['concurrency', { algo: 'concurrency', rate: undefined, interval: undefined, limit: 5, ttl: '1m' }],
  ])('do not count by %s', async (algo, more) => {
    expect(await messageOf(world(more))).toContain(
      `define.api: scope: 'world' does not work with algo '${algo}'. Use 'fixed-window', `,
    );
  });

  it.each<[string, object, number]>([
    ['a burst', { algo: 'gcra', rate: 1000, interval: '1s', burst: 5 }, 500],
    ['a bucket', { algo: 'token-bucket', rate: 10, interval: '1m', burst: 1, refill: 'greedy' }, 1500],
    ['a refill', { algo: 'token-bucket', refill: 'intervally' }, 1500],
  ])('need a quota of which a part is left while units are held: %s', async (_, more, lifetimeMs) => {
    const message = await messageOf(world(more));
    expect(message).toBe(
      `define.api: with scope: 'world', all of the quota would flow back within the ${lifetimeMs} ms for which a region may hold units. ` +
        "Use a longer 'interval', a larger 'burst', or no refill 'intervally'",
    );
  });

  it('are wanted by limits of scope world on Redis', async () => {
    expect(await messageOf({ ...world({}), regions: undefined })).toBe(
      "define.api: scope: 'world' needs the module's option 'regions', such as { name: 'us', home: 'rediss://eu.example.com' }",
    );
    expect(await messageOf({ define: { api: { algo: 'gcra', rate: 5, interval: '1m', scope: 'world' } } })).toBe(
      'none',
    );
  });
});

/** What is wrong with a limit of a policy. */
const problemsOf = (limit: object): unknown => {
  const reading = readPolicy('source()', new PlainValue({ limits: { api: limit } }, 'source()'), new Problems());
  return 'problems' in reading ? reading.problems.map(showProblem) : [];
};

describe('a policy of limits over several regions', () => {
  const window = { algo: 'sliding-window', rate: 100, interval: '1m', scope: 'world' };

  it('is read as code is', () => {
    expect(problemsOf(window)).toEqual([]);
    expect(problemsOf({ ...window, blockFor: '1m' })).toEqual([
      expect.stringContaining(
        "source() limits.api: options 'scope: world' and 'blockFor' exclude each other: units that a region holds are not subject to 'blockFor'",
      ),
    ]);
    expect(problemsOf({ ...window, algo: 'leaky-bucket' })).toEqual([
      expect.stringContaining(
        "scope: 'world' does not work with algo 'leaky-bucket'. Use 'fixed-window', 'calendar-window', 'budget', 'sliding-window', 'sliding-log', 'token-bucket' or 'gcra'",
      ),
    ]);
    expect(problemsOf({ ...window, algo: 'gcra', burst: 1 })).toEqual([
      expect.stringContaining('all of the quota would flow back within the 1500 ms for which a region may hold units'),
    ]);
    expect(problemsOf({ ...window, scope: 'planet' })).toEqual([
      expect.stringContaining('expected one of cluster, instance, world'),
    ]);
  });
});

describe('the numbers of the reference', () => {
  const guide = readFileSync('docs/reference/regions.md', 'utf8');
  const rows = [
    ...guide.matchAll(/^\| (\d+) (s|min|h|d) +\| ([\d.]+) (ms|s) +\| ([\d.]+) % +\| ([\d.]+) % +\|$/gm),
  ].map((row) => row.slice(1));
  const MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 };
  const RATE = 1_000_000;

  it('has some', () => {
    expect(rows).toHaveLength(6);
  });

  it.each(rows)('holds for %s %s', (count, unit, held, heldUnit, passes, lost) => {
    const interval = Number(count) * MS[unit]!;
    const algorithm = (name: string) => {
      const found = algorithms.get(name)!;
      return [found, found.compile({ algo: name, rate: RATE, interval } as never, 'test')] as const;
    };
    const [sliding, declared] = algorithm('sliding-window');
    expect(lifetimeOf(sliding, declared)).toBe(Number(held) * MS[heldUnit]! * 1000);
    const { interval: longer } = homeParameters(sliding, declared, 'test') as Parameters & { interval: number };
    expect(Math.floor((interval * 1_000_000) / longer) / 10).toBe(Number(passes));
    const [gcra, all] = algorithm('gcra');
    const { quota } = homeParameters(gcra, all, 'test');
    expect(Math.ceil(((RATE - quota) / RATE) * 1000) / 10).toBe(Number(lost));
  });
});
