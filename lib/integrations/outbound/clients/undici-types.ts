import type { ResponseHeaders } from '../../../engine/limit-headers/upstream-report.js';
import type { OutboundOptions } from '../outbound-options.js';

/** A request that undici dispatches, as the app's functions get it. */
export interface DispatchedRequest {
  /** The origin of the URL. */
  readonly origin?: string | URL | undefined;
  /** The path of the URL, with its query. */
  readonly path: string;
  /** The method. */
  readonly method: string;
  /** The headers, in any form that undici accepts. */
  readonly headers?: unknown;
  /** The body, in any form that undici accepts. */
  readonly body?: unknown;
}

/** A response that undici dispatches, as the app's functions get it. */
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
 * @typeParam Dispatch type of the dispatcher's `dispatch` function
 */
export type LimitedDispatcher = <Dispatch extends (options: never, handler: never) => boolean>(
  dispatch: Dispatch,
) => Dispatch;

/** The events of a request that undici 7 and later report to handlers. */
export interface DispatchHandler {
  onRequestStart?(controller: DispatchController, context: unknown): void;
  onRequestUpgrade?(controller: DispatchController, status: number, headers: unknown, socket: unknown): void;
  onResponseStart?(controller: DispatchController, status: number, headers: unknown, statusMessage?: string): void;
  onResponseData?(controller: DispatchController, chunk: Uint8Array): void;
  onResponseEnd?(controller: DispatchController, trailers: unknown): void;
  onResponseError?(controller: DispatchController, error: Error): void;
}

/** The controls that undici gives handlers for a request. */
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
