import type { IncomingMessage } from 'node:http';
import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { isRecord } from '../../app/config/option-checks.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { refuseUnknown, wholeNumber } from '../../engine/options/check-options.js';
import { givenOptions } from '../../engine/options/values.js';
import { listedLimits } from '../../app/limiter/limit-checks.js';

/** A limit, or the name of a defined one; or several. */
export type SocketLimits = string | LimitDefinition | readonly (string | LimitDefinition)[];

/** The options of `rateLimitSockets`. At least one of `handshakes`, `connections` and `frames` is given. */
export interface SocketLimitOptions {
  /**
   * Limits how often clients connect: each handshake costs one unit. A refused one is answered with status 429 and
   * `Retry-After`, and is not upgraded.
   * @default no limits
   */
  handshakes?: SocketLimits | undefined;
  /**
   * Limits how many connections are open at once, by `concurrency` limits. A connection holds its unit until it closes; if the
   * process dies, for `ttl`.
   * @default no limits
   */
  connections?: SocketLimits | undefined;
  /**
   * Limits the frames of clients, before any handler and whether they have one. A refused frame is dropped, and its client gets
   * the event `exception`.
   * @default no limits
   */
  frames?: SocketLimits | undefined;
  /**
   * How many refused frames close a connection, unless a minute passes without one: a whole number >= 1, or `false` for never.
   * @default 100
   */
  closeAfter?: number | false | undefined;
  /**
   * Returns the user of a handshake, for `key: 'user'`. It is called after the limits that need no user. If it throws, the
   * handshake is refused: with the status of an `HttpException`, otherwise with 401.
   * @default the `user` of the request, if anything has set it
   */
  authenticate?: ((request: IncomingMessage) => unknown) | undefined;
  /**
   * Returns the address of a client.
   * @default that of Express or Fastify, which know the trusted proxies; on others, that of the connection
   */
  address?: (request: IncomingMessage) => string | undefined;
}

type LimitList = readonly (string | LimitDefinition)[];

/** The options, read and checked. */
export interface SocketSettings {
  readonly handshakes: LimitList;
  readonly connections: LimitList;
  readonly frames: LimitList;
  readonly closeAfter: number;
  readonly authenticate: SocketLimitOptions['authenticate'] | undefined;
  readonly address: SocketLimitOptions['address'] | undefined;
}

const LOCATION = 'rateLimitSockets';
const KNOWN = ['handshakes', 'connections', 'frames', 'closeAfter', 'authenticate', 'address'] as const;

/** Reads the options. Throws `RateLimitConfigError`. */
export function readSocketOptions(given: unknown): SocketSettings {
  if (!isRecord(given) || Array.isArray(given)) throw new RateLimitConfigError(messages.notOptions(LOCATION, given));
  refuseUnknown(LOCATION, given, KNOWN);
  const options = givenOptions<Partial<SocketLimitOptions>>(given, KNOWN);
  const { closeAfter = 100, authenticate, address } = options;
  for (const [option, value] of Object.entries({ authenticate, address })) {
    if (value !== undefined && typeof value !== 'function') {
      throw new RateLimitConfigError(messages.wrongOption(LOCATION, option, value, 'a function of the request'));
    }
  }
  const lists = {
    handshakes: limitsOf('handshakes', options.handshakes),
    connections: limitsOf('connections', options.connections),
    frames: limitsOf('frames', options.frames),
  };
  if (Object.values(lists).every(({ length }) => length === 0)) {
    throw new RateLimitConfigError(socketMessages.noLimits(), { code: 'SLUICE_INVALID_LIMIT' });
  }
  const most = closeAfter === false ? Infinity : wholeNumber(LOCATION, 'closeAfter', closeAfter);
  return { ...lists, closeAfter: most, authenticate, address };
}

function limitsOf(option: string, given: unknown): LimitList {
  return given === undefined ? [] : listedLimits(given, `${LOCATION}.${option}`);
}
