import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import { outboundMessages } from '../../../engine/errors/messages/outbound.js';
import type { ResponseHeaders } from '../../../engine/limit-headers/upstream-report.js';
import type { OutboundCall, OutboundCaller, Permit, SentCall } from '../outbound-call.js';
import type { OutboundOptions } from '../outbound-options.js';
import { isStream, namedHeaders } from './requests-and-responses.js';

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
interface DispatchHandler {
  onRequestStart?(controller: DispatchController, context: unknown): void;
  onRequestUpgrade?(controller: DispatchController, status: number, headers: unknown, socket: unknown): void;
  onResponseStart?(controller: DispatchController, status: number, headers: unknown, statusMessage?: string): void;
  onResponseData?(controller: DispatchController, chunk: Uint8Array): void;
  onResponseEnd?(controller: DispatchController, trailers: unknown): void;
  onResponseError?(controller: DispatchController, error: Error): void;
}

interface DispatchController {
  readonly aborted: boolean;
  readonly paused: boolean;
  readonly reason: Error | null;
  rawHeaders?: unknown;
  rawTrailers?: unknown;
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

type Dispatch = (request: DispatchedRequest, handler: DispatchHandler) => boolean;
type Caller = OutboundCaller<DispatchedRequest, DispatchedResponse>;

/** Maximum number of bytes to keep of the body of a rejection, so that the last rejection can be passed on as the response. */
const MOST_KEPT = 1_000_000;

/** An interceptor that makes requests wait for their turn. */
export function limitedDispatcher(caller: Caller): LimitedDispatcher {
  const interceptor =
    (dispatch: Dispatch): Dispatch =>
    (request, handler) => {
      // Such a handler would get neither the response nor the error.
      if (typeof handler.onRequestStart !== 'function') throw new RateLimitArgumentError(outboundMessages.oldHandler());
      void new LimitedDispatch(caller, dispatch, request, handler).start();
      return true;
    };
  return interceptor as unknown as LimitedDispatcher;
}

/** A rejection by the upstream that has not been passed on yet. */
interface Refusal {
  readonly status: number;
  readonly headers: unknown;
  readonly statusMessage: string | undefined;
  readonly waitMs: number;
  readonly chunks: Uint8Array[];
  length: number;
  /** Ends the reading of a body that takes too long. */
  readonly timeout: NodeJS.Timeout;
  /** True if its body was cut off before its end. */
  isCut: boolean;
}

/** One request of undici. It sits between the dispatcher and the caller's handler. */
class LimitedDispatch implements DispatchHandler {
  private readonly controller = new WaitingController();
  private readonly sent: SentCall;
  private call: OutboundCall | undefined;
  private permit: Permit | undefined;
  private refusal: Refusal | undefined;
  private isAnswered = false;

  constructor(
    private readonly caller: Caller,
    private readonly dispatch: Dispatch,
    private readonly request: DispatchedRequest,
    private readonly handler: DispatchHandler,
  ) {
    const hasKey = namedHeaders(request.headers).get('idempotency-key') !== null;
    this.sent = { method: request.method, hasKey, canRepeat: !isStream(request.body) };
  }

  async start(): Promise<void> {
    const { caller, controller, handler, request } = this;
    try {
      // Lets the caller abort while it waits.
      handler.onRequestStart?.(controller, {});
    } catch (error) {
      controller.abort(error as Error);
    }
    try {
      this.call = await caller.call(() => request, controller.signal);
      this.permit = await this.call.enter();
    } catch (error) {
      handler.onResponseError?.(controller, error as Error);
      return;
    }
    this.send();
  }

  onRequestStart(controller: DispatchController): void {
    this.controller.follow(controller);
  }

  onRequestUpgrade(_: DispatchController, status: number, headers: unknown, socket: unknown): void {
    this.answered(status, headers);
    this.end();
    this.handler.onRequestUpgrade?.(this.controller, status, headers, socket);
  }

  onResponseStart(controller: DispatchController, status: number, headers: unknown, statusMessage?: string): void {
    // Informational responses are followed by the final one.
    if (status >= 200) {
      const waitMs = this.answered(status, headers);
      if (waitMs !== undefined) {
        const timeout = setTimeout(() => this.cut(controller), this.call!.bodyMs);
        this.refusal = { status, headers, statusMessage, waitMs, chunks: [], length: 0, timeout, isCut: false };
        return;
      }
    }
    this.handler.onResponseStart?.(this.controller, status, headers, statusMessage);
  }

  onResponseData(controller: DispatchController, chunk: Uint8Array): void {
    const { refusal } = this;
    if (refusal === undefined) return this.handler.onResponseData?.(this.controller, chunk);
    if (refusal.length + chunk.length > MOST_KEPT) return this.cut(controller);
    refusal.chunks.push(chunk);
    refusal.length += chunk.length;
  }

  onResponseEnd(_: DispatchController, trailers: unknown): void {
    const { refusal } = this;
    if (refusal === undefined) {
      this.end();
      this.handler.onResponseEnd?.(this.controller, trailers);
    } else void this.reenter(refusal, trailers);
  }

  onResponseError(_: DispatchController, error: Error): void {
    const { refusal } = this;
    if (refusal?.isCut === true && !this.controller.aborted) return void this.reenter(refusal, {});
    clearTimeout(refusal?.timeout);
    if (this.isAnswered) this.end();
    else this.call?.failed();
    this.handler.onResponseError?.(this.controller, error);
  }

  /** Stops reading the body of a rejection, because it is long or endless. */
  private cut(controller: DispatchController): void {
    const { refusal } = this;
    if (refusal === undefined || refusal.isCut) return;
    refusal.isCut = true;
    controller.abort(new Error(outboundMessages.longRefusal()));
  }

  /** Waits until the call may be sent again. If there isn't enough time, passes the rejection on as the response. */
  private async reenter(refusal: Refusal, trailers: unknown): Promise<void> {
    const { handler, controller } = this;
    clearTimeout(refusal.timeout);
    try {
      const permit = await this.call!.reenter(refusal.waitMs);
      this.refusal = undefined;
      if (permit !== undefined) {
        this.permit = permit;
        this.send();
        return;
      }
    } catch (error) {
      handler.onResponseError?.(controller, error as Error);
      return;
    }
    const { status, headers, statusMessage, chunks } = refusal;
    this.settle(status, namedHeaders(headers));
    try {
      handler.onResponseStart?.(controller, status, headers, statusMessage);
      for (const chunk of chunks) handler.onResponseData?.(controller, chunk);
      handler.onResponseEnd?.(controller, trailers);
    } catch (error) {
      // An exception of the handler fails its request, as in undici itself.
      handler.onResponseError?.(controller, error as Error);
    }
  }

  private send(): void {
    this.isAnswered = false;
    try {
      this.dispatch(this.request, this);
    } catch (error) {
      this.onResponseError(this.controller, error as Error);
    }
  }

  /** Reports a response to the learner. Returns how long to wait before the request is sent again; `undefined` if it isn't. */
  private answered(status: number, headers: unknown): number | undefined {
    const call = this.call!;
    const named = namedHeaders(headers);
    this.isAnswered = true;
    const report = call.answered({ status, headers: named, receivedAt: Date.now() });
    const waitMs = call.waitMs(this.sent, report, status);
    if (waitMs === undefined) this.settle(status, named);
    return waitMs;
  }

  private settle(status: number, headers: ResponseHeaders): void {
    void this.caller.settle(this.permit!, () => ({ status, headers }));
  }

  private end(): void {
    void this.permit!.release();
  }
}

/** Controls a request while it waits and after it was sent. A handler has one controller for all attempts. */
class WaitingController implements DispatchController {
  private readonly abortion = new AbortController();
  private current: DispatchController | undefined;
  private isPaused = false;

  /** Aborts when the handler aborts. */
  get signal(): AbortSignal {
    return this.abortion.signal;
  }

  get aborted(): boolean {
    return this.signal.aborted;
  }

  get paused(): boolean {
    return this.current?.paused ?? this.isPaused;
  }

  get reason(): Error | null {
    return (this.signal.reason as Error | undefined) ?? null;
  }

  get rawHeaders(): unknown {
    return this.current?.rawHeaders;
  }

  get rawTrailers(): unknown {
    return this.current?.rawTrailers;
  }

  follow(controller: DispatchController): void {
    this.current = controller;
    if (this.aborted) controller.abort(this.reason!);
    else if (this.isPaused) controller.pause();
  }

  abort(reason: Error): void {
    this.abortion.abort(reason);
    this.current?.abort(reason);
  }

  pause(): void {
    this.isPaused = true;
    this.current?.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.current?.resume();
  }
}
