import { show } from '../wording.js';

/** What is given as `redis`, and why it is not used. */
interface Refused {
  readonly is: string;
  readonly hint: string;
}

/** What to do about errors of connections, by their texts. */
const ADVICE: readonly (readonly [error: RegExp, advice: string])[] = [
  [
    /WRONGPASS/,
    'which refuses the user or the password; wants those it knows, in a URL as redis://user:password@host:port',
  ],
  [/NOAUTH/, 'which wants a password, in a URL as redis://:password@host:port'],
  [/ENOTFOUND|EAI_AGAIN/, 'a name that no name server knows; wants the host of Redis'],
  [/ECONNREFUSED/, 'where nothing listens; wants Redis started there, or another host and port'],
  [
    /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/,
    'from where nothing answers; wants another host, or a network and firewall that lead there (with rediss:// or the option tls: a Redis ' +
      'that speaks TLS, else write redis://)',
  ],
  [
    /no answer to the TLS handshake/,
    'which probably does not speak TLS; write redis:// in place of rediss://, or turn TLS on there',
  ],
  [
    /wrong version number|packet length too long|before secure TLS connection/,
    'which does not speak TLS; write redis:// in place of rediss://, or turn TLS on there',
  ],
  [/All sentinels are unreachable/, "none of which answers; wants the hosts and ports of running ones as 'sentinels'"],
  [
    /Failed to refresh slots cache|root nodes/i,
    "none of which answers as a node of a Cluster; wants running ones as 'nodes', and user and password in 'redisOptions'",
  ],
];

function adviceOn(reason: string): string | undefined {
  return ADVICE.find(([error]) => error.test(reason))?.[1];
}

/** The messages of connections to Redis that are not usable. */
export const redisMessages = {
  unusable: (location: string, { is, hint }: Refused, wants: string) =>
    `${location}: option 'redis' is ${is} (${hint}), wants ${wants}`,
  noClient: (refused: Refused | undefined, got: unknown) =>
    `the connection to Redis is ${refused === undefined ? show(got) : `${refused.is} (${refused.hint})`}, wants one of ` +
    'ioredis 5 or 6, or of node-redis 5 or 6',
  /** `reason` with the option, where it leads (without a password), and what to do, where that can be told. */
  withAdvice: (reason: string, server: string | undefined) => {
    const advice = adviceOn(reason);
    return advice === undefined || server === undefined
      ? reason
      : `${reason.replace(/\.$/, '')}; option 'redis' leads to ${server}, ${advice}`;
  },
  unreachable: (server: string, reason: string) => {
    const advice = adviceOn(reason);
    return `Redis at ${server} is not connected: ${advice === undefined ? reason : `${reason.replace(/\.$/, '')}, ${advice}`}`;
  },
  noHandshake: () => 'no answer to the TLS handshake',
  urlWants: (url: string) => `the URL '${url}'`,
  sentByEval: (reason: string) =>
    `Redis does not keep the limiter's scripts, so EVAL sends them whenever Redis lacks them: ${reason}`,
  notOpen: (location: string) =>
    `${location}: option 'redis' is a client of node-redis that is not open, wants \`await client.connect()\` before it is given`,
} as const;
