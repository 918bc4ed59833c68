import type { ResponseHeaders } from '../headers/upstream-report.js';
import type { OutboundOptions } from '../outbound-options.js';

/** What functions see of a request that undici dispatches. */
export interface DispatchedRequest {
  /** The origin of the URL. */
  readonly origin?: string | URL | undefined;
  /** The path of the URL, with its query. */
  readonly path: string;
  /** The method. */
  readonly method: string;
  /** The headers, in any form that undici takes. */
  readonly headers?: unknown;
  /** The body, in any form that undici takes. */
  readonly body?: unknown;
}

/** What functions see of a response that undici dispatches. */
export interface DispatchedResponse {
  /** The HTTP status. */
  readonly status: number;
  /** The headers. */
  readonly headers: ResponseHeaders;
}

/** How calls of undici are limited. */
export type DispatcherOptions = OutboundOptions<DispatchedRequest, DispatchedResponse>;

/**
 * An interceptor of undici, for `compose`.
 *
 * @typeParam Dispatch that of the dispatcher
 */
export type LimitedDispatcher = <Dispatch extends (options: never, handler: never) => boolean>(
  dispatch: Dispatch,
) => Dispatch;

/** What undici tells handlers of a request, from its version 7 on. */
export interface DispatchHandler {
  onRequestStart?(controller: DispatchController, context: unknown): void;
  onRequestUpgrade?(controller: DispatchController, status: number, headers: unknown, socket: unknown): void;
  onResponseStart?(controller: DispatchController, status: number, headers: unknown, statusMessage?: string): void;
  onResponseData?(controller: DispatchController, chunk: Uint8Array): void;
  onResponseEnd?(controller: DispatchController, trailers: unknown): void;
  onResponseError?(controller: DispatchController, error: Error): void;
}

/** What handlers can do to a request. */
export interface DispatchController {
  readonly aborted: boolean;
  readonly paused: boolean;
  readonly reason: Error | null;
  rawHeaders?: unknown;
  rawTrailers?: unknown;
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}
