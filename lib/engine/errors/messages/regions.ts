import { show } from '../wording.js';

/** The messages of the module's option `regions`, and of the server that counts for all of them. */
export const regionMessages = {
  wrong: (got: unknown) =>
    `RateLimitModule: option 'regions' is ${show(got)}, wants { name, home } such as { name: 'us', home: 'rediss://eu.example.com' }`,
  wrongName: (got: unknown) =>
    `RateLimitModule: option 'regions.name' is ${show(got)}, wants 1 to 32 letters, digits or hyphens, such as 'us-east-1'`,
  noRedis: () =>
    "RateLimitModule: option 'regions' is given without 'redis', wants the Redis of this region there: it holds the region's units",
  longTimeout: (got: number, most: number) =>
    `RateLimitModule: option 'timeout' is ${got} ms with 'regions', wants at most ${most} ms: units of a region have to be used in time`,
  homeIsCluster: () =>
    "RateLimitModule: option 'regions.home' is a Cluster, wants one server or its Sentinels: it has to know of all calls of the regions",
  sharedHome: (server: string) =>
    `The home of the regions is this region's own Redis, ${server}: after any restart of it, limits of scope 'world' grant nothing for an ` +
    'interval, and budgets for the rest of their period. Give the home a server of its own',
  noRegions: (location: string) =>
    `${location}: option 'scope' is 'world', wants the module's option 'regions', such as { name: 'us', home: 'rediss://eu.example.com' }`,
  homeFailing: (home: string, reason: string) =>
    `The home of the regions, ${home}, fails: ${reason}. Limits of scope 'world' spend the units that this region holds, and then their ` +
    "'onStoreError' decides, by default 'deny'",
  homeRecovered: (home: string) => `The home of the regions, ${home}, answers again`,
} as const;
