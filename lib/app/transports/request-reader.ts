import type { ExecutionContext, HttpException } from '@nestjs/common';
import type { ClientSocket } from './connection.js';

/** The members of a request that are read, regardless of the framework. */
export interface RequestLike {
  /** The client's address, for `key: 'ip'`. */
  readonly ip?: unknown;
  /** The headers by name in lower case, for `key: 'header:<name>'`. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>> | undefined;
  /** The user that a guard has set, for `key: 'user'`. */
  readonly user?: unknown;
  /**
   * The socket of the request, as every Node request has it. If a network socket has lost its address, the client has disconnected, and the
   * call is rejected, because there is no client to count it for.
   */
  readonly socket?: ClientSocket | undefined;
}

/** The request and the response of a call, if its transport provides them. */
export interface RequestParts {
  /** The request, which identifies the caller. Without it, limits per address, user or header have no key. */
  readonly request?: RequestLike | undefined;
  /**
   * The response to this call. If it has headers, they report the limits. If it is a Node response, or contains one as `raw`, the call ends
   * when that closes; otherwise it ends when the handler returns.
   */
  readonly response?: object | undefined;
  /**
   * True if the response belongs to several calls, such as the fields of a GraphQL query. Its headers then report all of them.
   * @default false
   */
  readonly sharesResponse?: boolean;
}

/**
 * Reads the calls of one transport, for the option `readers`: an object, or an injectable class. HTTP, GraphQL, WebSockets and
 * microservices have built-in readers; a reader for the same transport replaces them. If a class injects others, it must be a provider of a
 * module.
 */
export interface RequestReader {
  /** The value of `context.getType()` for these calls, such as `'telegraf'`. */
  readonly transport: string;

  /** Returns the request and the response. It is called again after the guards, which may have set a user. */
  read(context: ExecutionContext): RequestParts;

  /**
   * Returns an object that identifies one call and no other. It must be one of the handler's arguments, otherwise `@RateLimitDecision()` is
   * `undefined` for these calls.
   * @default the array of the arguments
   */
  call?(context: ExecutionContext): object;

  /**
   * Returns the error to throw instead of a `RateLimitExceededException`, or instead of another `HttpException` of the check: 503 while the
   * store fails, 401 or 400 for `onMissingKey: 'refuse'`.
   * @default the exception itself
   */
  refuse?(exception: HttpException, context: ExecutionContext): unknown;
}

/** The headers of a Node request, by name in lower case. Some HTTP adapters provide the Web's `Headers` instead. */
type GivenHeaders = Readonly<Record<string, string | string[] | undefined>> & { readonly get?: unknown };

/** The value of a request header, by its name in lower case. */
export function headerOf(headers: GivenHeaders | undefined, name: string): string | undefined {
  const value: unknown = headers?.[name];
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.join(', ');
  return isOfWeb(headers) ? (headers.get(name) ?? undefined) : undefined;
}

function isOfWeb(headers: unknown): headers is Headers {
  return typeof (headers as Headers | null | undefined)?.get === 'function';
}
