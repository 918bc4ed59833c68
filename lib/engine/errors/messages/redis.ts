import { show } from '../wording.js';

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
  [/All sentinels are unreachable/, "none of which answers. Set 'sentinels' to the hosts and ports of running ones"],
  [
    /Failed to refresh slots cache|root nodes/i,
    "none of which answers as a node of a Cluster. Set 'nodes' to running ones, and user and password in 'redisOptions'",
  ],
];

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
    const advice = adviceOn(reason);
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
