import { STATUS_CODES } from 'node:http';
import { HttpException, HttpStatus } from '@nestjs/common';
import type { RateLimitErrorCode } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { listMessages } from '../../engine/errors/messages/rates.js';
import { type CheckResult, isHidden } from '../../engine/limits/decision.js';

// Kept separate from the exceptions, since apps log and compare those.
const answered = new WeakSet<object>();
const givenMessages = new WeakMap<object, string>();
const givenStatuses = new WeakSet<object>();
const withoutWait = new WeakSet<object>();
const foundLimits = new WeakSet<object>();

/**
 * The request was rejected: 429 Too Many Requests, 503 for an `adaptive` limit, or the `status` of the limit. The body contains the names
 * of the limits that rejected it, except hidden ones.
 */
export class RateLimitExceededException extends HttpException {
  /** The error's code: `'SLUICE_LIMIT_EXCEEDED'`. */
  declare readonly code: RateLimitErrorCode;

  static {
    // Of the class, not of each rejection, and writable: apps add properties to exceptions.
    Object.defineProperty(this.prototype, 'code', {
      value: 'SLUICE_LIMIT_EXCEEDED',
      writable: true,
      configurable: true,
    });
  }

  /** The names of the limits that rejected, as the client receives them. */
  readonly limits: readonly string[];

  /**
   * Thrown by the guard. Your own code may also throw it; the response then has the same headers and body.
   *
   * @param result the result of all limits of the request, as `LimiterService.check` returns it
   * @param message the message in the body, by default 'Too many requests'
   * @param limits the names of the limits that rejected, by default those of `result` that are not hidden
   * @param body the body, by default made from the other parameters
   * @param status the HTTP status, by default that of the limit, or 429
   */
  constructor(
    readonly result: CheckResult,
    message: string = messages.exceeded(),
    limits?: readonly string[],
    body?: object,
    status?: number,
  ) {
    const names = limits ?? shownRefusals(result);
    super(body ?? exceededBody(message, names, status), status ?? HttpStatus.TOO_MANY_REQUESTS);
    this.limits = names;
    this.message = message;
    if (limits === undefined) foundLimits.add(this);
    if (body === undefined) givenMessages.set(this, message);
    if (status !== undefined) givenStatuses.add(this);
  }

  /** @internal True if the guard threw it and has set its headers and body. */
  get isAnswered(): boolean {
    return answered.has(this);
  }

  /** @internal */
  markAnswered(): void {
    answered.add(this);
  }

  /** @internal The message passed to the constructor; `undefined` if a body was passed. */
  get givenMessage(): string | undefined {
    return givenMessages.get(this);
  }

  /** @internal Changes the response. Requests that wait for the same promise share its error, so one error may serve several responses. */
  answerWith(message: string, body: object, status: number): void {
    this.message = message;
    Object.assign(this, { response: body, status });
  }

  /** @internal Leaves out limits unless they were named explicitly. Copies of decisions don't show that their limit is hidden. */
  leaveOut(names: readonly string[]): void {
    if (!foundLimits.has(this)) return;
    Object.assign(this, { limits: this.limits.filter((name) => !names.includes(name)) });
  }

  /** @internal True if a status was passed to the constructor. */
  get hasOwnStatus(): boolean {
    return givenStatuses.has(this);
  }

  /** @internal True if the response doesn't report when to retry. */
  get hidesWait(): boolean {
    return withoutWait.has(this);
  }

  /** @internal */
  hideWait(): void {
    withoutWait.add(this);
  }

  /** The longest wait of the limits that rejected, in milliseconds; `Infinity` if the request can never fit. */
  get retryAfterMs(): number {
    return this.result.tightest.retryAfterMs;
  }
}

function shownRefusals({ decisions }: CheckResult): string[] {
  return decisions.filter((decision) => !decision.allowed && !isHidden(decision)).map(({ limit }) => limit);
}

/** The default body of a rejection. */
export function exceededBody(
  message: string,
  limits: readonly string[],
  status: number = HttpStatus.TOO_MANY_REQUESTS,
): Record<string, unknown> {
  return { statusCode: status, message, error: STATUS_CODES[status] ?? 'Error', limits };
}

/** The HTTP statuses of requests that a list denies. */
export type DeniedStatus = 403 | 429;

/** A list denied the request: 403 Forbidden, or the status of the module's `lists.status`. */
export class RateLimitDeniedException extends HttpException {
  /** The error's code: `'SLUICE_DENIED'`. */
  declare readonly code: RateLimitErrorCode;

  static {
    // Of the class, not of each rejection, and writable: apps add properties to exceptions.
    Object.defineProperty(this.prototype, 'code', { value: 'SLUICE_DENIED', writable: true, configurable: true });
  }

  /**
   * Thrown by the guard. Your own code may also throw it.
   *
   * @param status the HTTP status
   * @param body the body; by default in the format of Nest's own exceptions
   */
  constructor(status: DeniedStatus = HttpStatus.FORBIDDEN, body: object = deniedBody(status)) {
    super(body, status);
    this.message = messageOf(status);
  }
}

/** The body in the format of problem details (RFC 9457). It doesn't need its own problem type. */
export function deniedProblem(status: DeniedStatus): Record<string, unknown> {
  return { type: 'about:blank', title: STATUS_CODES[status], status, detail: messageOf(status) };
}

function deniedBody(status: DeniedStatus): Record<string, unknown> {
  return { statusCode: status, message: messageOf(status), error: STATUS_CODES[status] };
}

function messageOf(status: DeniedStatus): string {
  return status === 403 ? listMessages.forbidden() : messages.exceeded();
}
