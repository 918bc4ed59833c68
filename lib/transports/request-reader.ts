import type { ExecutionContext, HttpException } from '@nestjs/common';
import type { ClientSocket } from './connection.js';

/** What is read of a request, whatever framework made it. */
export interface RequestLike {
  /** The client's address, for `key: 'ip'`. */
  readonly ip?: unknown;
  /** The headers by their names in lower case, for `key: 'header:<name>'`. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>> | undefined;
  /** The user that a guard found, for `key: 'user'`. */
  readonly user?: unknown;
  /**
   * The socket that the request came by, as every request of Node has it. One of a network whose address is gone has lost its
   * client, and then the call is refused, since it cannot be counted for anyone.
   */
  readonly socket?: ClientSocket | undefined;
}

/** The request and the response behind a call, as far as its transport has them. */
export interface RequestParts {
  /** Whose call it is. Without it, limits by address, user or header have no key there. */
  readonly request?: RequestLike | undefined;
  /**
   * The response to this call: it gets the headers that describe limits, if it has headers. If it is a response of Node, or
   * holds one as `raw`, the call ends when that closes; else when the handler does.
   */
  readonly response?: object | undefined;
  /**
   * Whether the response answers several calls, such as the fields of a GraphQL query. Its headers then describe all of them.
   * @default false
   */
  readonly sharesResponse?: boolean;
}

/**
 * Reads the calls of one transport, for the option `readers`: an object, or an injectable class. There are readers of HTTP, GraphQL,
 * WebSockets and microservices already; one of the same transport replaces it. A class that injects others has to be a provider of a module.
 */
export interface RequestReader {
  /** What `context.getType()` says of these calls, such as `'telegraf'`. */
  readonly transport: string;

  /** Finds request and response. It is asked again after the guards, which may have found a user. */
  read(context: ExecutionContext): RequestParts;

  /**
   * The object that stands for one call, and for no other: one of the handler's arguments, or `@RateLimitDecision()` is
   * `undefined` there.
   * @default the list of the arguments
   */
  call?(context: ExecutionContext): object;

  /**
   * The error to throw instead of a `RateLimitExceededException`, or of another `HttpException` that the check ended with: 503 while
   * the store fails, 401 or 400 by `onMissingKey: 'refuse'`.
   * @default the exception itself
   */
  refuse?(exception: HttpException, context: ExecutionContext): unknown;
}
