import { show, wrongInput } from '../wording.js';

/** An unusable value of `redis`, with the reason. */
interface Refused {
  readonly is: string;
  readonly hint: string;
}

/** Advice for connection errors, by their texts. */
const ADVICE: readonly (readonly [error: RegExp, advice: string])[] = [
  [/WRONGPASS/, 'which rejects the user or the password. Use valid ones, in a URL as redis://user:password@host:port'],
  [/NOAUTH/, 'which requires a password, in a URL as redis://:password@host:port'],
  [/ENOTFOUND|EAI_AGAIN/, 'a name that no name server knows. Use the host of Redis'],
  [/ECONNREFUSED/, 'where nothing listens. Start Redis there, or use another host and port'],
  [
    /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/,
    'which does not answer. Check the host, the network and the firewall (with rediss:// or the option tls, also check that Redis ' +
      'has TLS enabled, otherwise write redis://)',
  ],
  [
    /wrong version number|packet length too long|before secure TLS connection/,
    'which does not use TLS. Write redis:// instead of rediss://, or enable TLS there',
  ],
  [
    /no answer to the TLS handshake/,
    'which probably does not use TLS. Write redis:// instead of rediss://, or enable TLS there',
  ],
  [/READONLY/, 'which is a replica and takes no writes. Use the address of its master'],
  [/\bOOM\b/, "whose memory is full. Raise its 'maxmemory', or delete keys of other programs there"],
  [/Unknown RESP type|Protocol error/, 'where something other than Redis answers. Use the host and port of Redis'],
  [
    /DB index is out of range|invalid DB index/,
    'which has no database with this number. Use a lower one, mostly 0 to 15',
  ],
  [/All sentinels are unreachable/, "none of which answers. Set 'sentinels' to the hosts and ports of running ones"],
  [
    /Failed to refresh slots cache|root nodes/i,
    "none of which answers as a node of a Cluster. Set 'nodes' to running ones, and user and password in 'redisOptions'",
  ],
];

/** The errors of a connection that breaks while the app runs. */
const BROKEN =
  /is not connected \(status '(?:close|connect|connecting|reconnecting)'\)|Connection is closed|ECONNRESET|EPIPE/;

function adviceOn(reason: string): string | undefined {
  return ADVICE.find(([error]) => error.test(reason))?.[1];
}

/** The messages of unusable Redis connections. */
export const redisMessages = {
  unusable: (location: string, { is, hint }: Refused, expected: string) =>
    `${location}.redis: expected ${expected}, received ${is} (${hint})`,
  /** A message, with a hint on counting without Redis. */
  orLeftOut: (message: string) => `${message}; leave the option out to count in the process`,
  noClient: (refused: Refused | undefined, received: unknown) =>
    'connection to Redis: expected a client of ioredis 5 or 6, or of node-redis 5 or 6, received ' +
    (refused === undefined ? show(received) : `${refused.is} (${refused.hint})`),
  /** `reason` with the server that the option `redis` points to (without a password), and advice if there is any. */
  withAdvice: (reason: string, server: string | undefined) => {
    const retried = BROKEN.test(reason) ? 'and the connection is retried until Redis answers' : undefined;
    const advice = adviceOn(reason) ?? retried;
    return advice === undefined || server === undefined
      ? reason
      : `${reason.replace(/\.$/, '')}; option 'redis' points to ${server}, ${advice}`;
  },
  unreachable: (server: string, reason: string) => {
    const advice = adviceOn(reason);
    return `Redis at ${server} is not connected: ${advice === undefined ? reason : `${reason.replace(/\.$/, '')}, ${advice}`}`;
  },
  noHandshake: () => 'no answer to the TLS handshake',
  urlExpected: (url: string) => `the URL '${url}'`,
  sentByEval: (reason: string) =>
    `Redis does not keep the limiter's scripts, so EVAL sends them whenever Redis lacks them: ${reason}`,
  notOpen: (location: string) =>
    `${location}.redis: expected an open client of node-redis, received one that is not open. Call \`await client.connect()\` first`,
} as const;

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

/** The messages of limits whose charges replicas confirm. */
export const replicaMessages = {
  unconfirmed: (confirmed: number, wanted: number, ms: number) =>
    `Redis has changed the counter, but only ${confirmed} of ${wanted} replicas confirmed that within ${ms} ms: a failover may lose it`,
  lagging: (reason: string) => `replicas lag: ${reason}; onStoreError decides unconfirmed requests`,
  unasked: (ms: number) =>
    `Redis has changed the counter, but did not report within ${ms} ms how many replicas confirmed that: a failover may lose it`,
  notItsTurn: (ms: number) =>
    `no request was sent to Redis within ${ms} ms, since replicas have not yet confirmed earlier ones: the counter is unchanged`,
} as const;
