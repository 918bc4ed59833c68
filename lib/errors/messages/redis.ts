import { show } from '../wording.js';

/** What is given as `redis`, and why it is not used. */
interface Refused {
  readonly is: string;
  readonly hint: string;
}

/** The messages of connections to Redis that are not usable. */
export const redisMessages = {
  unusable: (location: string, { is, hint }: Refused, wants: string) =>
    `${location}: option 'redis' is ${is} (${hint}), wants ${wants}`,
  noClient: (refused: Refused | undefined, got: unknown) =>
    `the connection to Redis is ${refused === undefined ? show(got) : `${refused.is} (${refused.hint})`}, wants one of ` +
    'ioredis 5 or 6, or of node-redis 5 or 6',
  notOpen: (location: string) =>
    `${location}: option 'redis' is a client of node-redis that is not open, wants \`await client.connect()\` before it is given`,
} as const;
