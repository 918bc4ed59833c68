import { wrongInput } from '../wording.js';

/** The messages of the module's option `regions`, and of the home Redis. */
export const regionMessages = {
  wrong: (received: unknown) =>
    wrongInput(
      'RateLimitModule.regions',
      "{ name, home } such as { name: 'us', home: 'rediss://eu.example.com' }",
      received,
    ),
  wrongName: (received: unknown) =>
    wrongInput('RateLimitModule.regions.name', "1 to 32 letters, digits or hyphens, such as 'us-east-1'", received),
  noRedis: () =>
    "RateLimitModule: option 'regions' needs 'redis', the Redis of this region: it stores the region's units",
  longTimeout: (received: number, most: number) =>
    `RateLimitModule.timeout: expected at most ${most} ms with 'regions', received ${received} ms: a region must use its units in time`,
  homeIsCluster: () =>
    'RateLimitModule.regions.home: expected one server or its Sentinels, received a Cluster: the home has to see all calls of the regions',
  sharedHome: (server: string) =>
    `The home of the regions is this region's own Redis, ${server}: after any restart of it, limits of scope 'world' grant nothing for an ` +
    'interval, and budgets for the rest of their period. Use a separate server as the home',
  noRegions: (location: string) =>
    `${location}: scope: 'world' needs the module's option 'regions', such as { name: 'us', home: 'rediss://eu.example.com' }`,
  homeFailing: (home: string, reason: string) =>
    `The home of the regions, ${home}, fails: ${reason}. Limits of scope 'world' spend the units that this region holds, and then follow their ` +
    "'onStoreError', by default 'deny'",
  homeRecovered: (home: string) => `The home of the regions, ${home}, answers again`,
} as const;
