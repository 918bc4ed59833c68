import type { ExecutionContext, HttpException } from '@nestjs/common';
import type { ClientSocket } from './connection.js';

/** The part of a request that is read, whatever framework made it. */
export interface RequestLike {
  /** The client's address, for `key: 'ip'`. */
  readonly ip?: unknown;
  /** The headers by name in lower case, for `key: 'header:<name>'`. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>> | undefined;
  /** The user that a guard has set, for `key: 'user'`. */
  readonly user?: unknown;
  /**
   * The socket that the request came through, as every Node request has it. If a network socket has lost its address, its client
   * is gone, and the call is refused, since it cannot be counted for anyone.
   */
  readonly socket?: ClientSocket | undefined;
}

/** The request and the response of a call, as far as its transport has them. */
export interface RequestParts {
  /** Who makes the call. Without it, limits by address, user or header have no key. */
  readonly request?: RequestLike | undefined;
  /**
   * The response to this call. It gets the headers that describe limits, if it has headers. If it is a Node response, or holds
   * one as `raw`, the call ends when that closes; otherwise when the handler returns.
   */
  readonly response?: object | undefined;
  /**
   * Whether the response answers several calls, such as the fields of a GraphQL query. Its headers then describe all of them.
   * @default false
   */
  readonly sharesResponse?: boolean;
}

/**
 * Reads the calls of one transport, for the option `readers`: an object, or an injectable class. HTTP, GraphQL, WebSockets and
 * microservices have built-in readers; one for the same transport replaces them. A class that injects others must be a provider
 * of a module.
 */
export interface RequestReader {
  /** The value of `context.getType()` for these calls, such as `'telegraf'`. */
  readonly transport: string;

  /** Returns request and response. It is called again after the guards, which may have set a user. */
  read(context: ExecutionContext): RequestParts;

  /**
   * Returns the object that identifies one call and no other: it must be one of the handler's arguments, or
   * `@RateLimitDecision()` is `undefined` there.
   * @default the array of the arguments
   */
  call?(context: ExecutionContext): object;

  /**
   * Returns the error to throw instead of a `RateLimitExceededException`, or of another `HttpException` of the check: 503 while
   * the store fails, 401 or 400 by `onMissingKey: 'refuse'`.
   * @default the exception itself
   */
  refuse?(exception: HttpException, context: ExecutionContext): unknown;
}
