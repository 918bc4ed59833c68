import type { RateLimitErrorCode } from '../../engine/errors/codes.js';
import { STATUS_CODES } from 'node:http';
import { HttpException, HttpStatus } from '@nestjs/common';
import { messages } from '../../engine/errors/messages/general.js';
import { isHidden } from '../../engine/limits/hidden-decisions.js';
import type { CheckResult } from '../../engine/limits/decision.js';

// Kept beside the exceptions, since apps log and compare those.
const answered = new WeakSet<object>();
const givenMessages = new WeakMap<object, string>();
const givenStatuses = new WeakSet<object>();
const withoutWait = new WeakSet<object>();
const foundLimits = new WeakSet<object>();

/**
 * A request was refused: 429 Too Many Requests, 503 by an `adaptive` limit, or the `status` of the limit. Its body names the limits
 * that refused, except those that are hidden.
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

  /** The names of the limits that refused, as clients get them. */
  readonly limits: readonly string[];

  /**
   * Thrown by the guard; code that refuses by itself may throw one, too, and its response gets the same headers and body.
   *
   * @param result the result of all limits of the request, as `LimiterService.check` returns it
   * @param message the message of the body, by default 'Too many requests'
   * @param limits the names of the limits that refused, by default those of `result` that are not hidden
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

  /** @internal Whether the guard made it, and has set its headers and body. */
  get isAnswered(): boolean {
    return answered.has(this);
  }

  /** @internal */
  markAnswered(): void {
    answered.add(this);
  }

  /** @internal The message it was made with; `undefined` if it was made with a body. */
  get givenMessage(): string | undefined {
    return givenMessages.get(this);
  }

  /** @internal Changes what the client gets. Requests that wait for the same promise share its error, so one may answer many. */
  answerWith(message: string, body: object, status: number): void {
    this.message = message;
    Object.assign(this, { response: body, status });
  }

  /** @internal Leaves out limits that were not named on purpose: copies of decisions do not show that theirs is hidden. */
  leaveOut(names: readonly string[]): void {
    if (!foundLimits.has(this)) return;
    Object.assign(this, { limits: this.limits.filter((name) => !names.includes(name)) });
  }

  /** @internal Whether it was made with a status. */
  get hasOwnStatus(): boolean {
    return givenStatuses.has(this);
  }

  /** @internal Whether clients are not told when to come back. */
  get hidesWait(): boolean {
    return withoutWait.has(this);
  }

  /** @internal */
  hideWait(): void {
    withoutWait.add(this);
  }

  /** The longest wait of the limits that refused, in milliseconds; `Infinity` if the request can never fit. */
  get retryAfterMs(): number {
    return this.result.tightest.retryAfterMs;
  }
}

function shownRefusals({ decisions }: CheckResult): string[] {
  return decisions.filter((decision) => !decision.allowed && !isHidden(decision)).map(({ limit }) => limit);
}

/** The default body of a refusal. */
export function exceededBody(
  message: string,
  limits: readonly string[],
  status: number = HttpStatus.TOO_MANY_REQUESTS,
): Record<string, unknown> {
  return { statusCode: status, message, error: STATUS_CODES[status] ?? 'Error', limits };
}
