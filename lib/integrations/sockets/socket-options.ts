import type { IncomingMessage } from 'node:http';
import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { listedLimits } from '../../app/limiter/limit-checks.js';
import { configError } from '../../engine/errors/errors.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { checkValue, knownOptions, wholeNumber } from '../../engine/options/check-options.js';
import { callableOrClass } from '../../engine/options/kinds.js';

/** A limit, the name of a defined limit, or a list of these. */
export type SocketLimits = string | LimitDefinition | readonly (string | LimitDefinition)[];

/** The options of `rateLimitSockets`. At least one of `handshakes`, `connections` and `frames` is required. */
export interface SocketLimitOptions {
  /**
   * Limits how often clients connect: each handshake costs one unit. A rejected handshake gets status 429 and `Retry-After`, and is not
   * upgraded.
   * @default no limits
   */
  handshakes?: SocketLimits | undefined;
  /**
   * Limits the number of open connections, with `concurrency` limits. A connection holds its unit until it closes; if the process dies,
   * until `ttl` has passed.
   * @default no limits
   */
  connections?: SocketLimits | undefined;
  /**
   * Limits the frames of clients before any handler, even if there is no handler for them. A rejected frame is dropped, and its client gets
   * the event `exception`.
   * @default no limits
   */
  frames?: SocketLimits | undefined;
  /**
   * The number of rejected frames after which a connection is closed: a whole number >= 1, or `false` for never. The count restarts after a
   * minute without a rejected frame.
   * @default 100
   */
  closeAfter?: number | false | undefined;
  /**
   * Returns the user of a handshake, for `key: 'user'`. It is called after the limits that need no user. If it throws, the handshake is
   * rejected: with the status of an `HttpException`, otherwise with 401.
   * @default the `user` of the request, if anything has set it
   */
  authenticate?: ((request: IncomingMessage) => unknown) | undefined;
  /**
   * Returns the address of a client.
   * @default the address that Express or Fastify determine, which know the trusted proxies; on others, the address of the connection
   */
  address?: (request: IncomingMessage) => string | undefined;
}

type LimitList = readonly (string | LimitDefinition)[];

export interface SocketSettings extends Pick<SocketLimitOptions, 'authenticate'> {
  readonly handshakes: LimitList;
  readonly connections: LimitList;
  readonly frames: LimitList;
  readonly closeAfter: number;
  readonly address: SocketLimitOptions['address'] | undefined;
}

const LOCATION = 'rateLimitSockets';
const FUNCTION = callableOrClass('a function of the request');
const KNOWN = ['handshakes', 'connections', 'frames', 'closeAfter', 'authenticate', 'address'] as const;

/** Reads the options. Throws `RateLimitConfigError`. */
export function readSocketOptions(given: unknown): SocketSettings {
  const options = knownOptions<SocketLimitOptions>(LOCATION, given, KNOWN);
  const { closeAfter = 100, authenticate, address } = options;
  for (const [option, value] of Object.entries({ authenticate, address })) {
    if (value !== undefined) checkValue(LOCATION, option, value, FUNCTION);
  }
  const lists = {
    handshakes: limitsOf('handshakes', options.handshakes),
    connections: limitsOf('connections', options.connections),
    frames: limitsOf('frames', options.frames),
  };
  if (Object.values(lists).every(({ length }) => length === 0)) {
    throw configError('SLUICE_INVALID_LIMIT', socketMessages.noLimits());
  }
  const most = closeAfter === false ? Infinity : wholeNumber(LOCATION, 'closeAfter', closeAfter);
  return { ...lists, closeAfter: most, authenticate, address };
}

function limitsOf(option: string, given: unknown): LimitList {
  return given === undefined ? [] : listedLimits(given, `${LOCATION}.${option}`);
}
