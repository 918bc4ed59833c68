import { STATUS_CODES } from 'node:http';
import { HttpException, HttpStatus } from '@nestjs/common';
import { messages } from '../errors/messages/general.js';
import type { CheckResult } from '../limits/decision.js';

// Beside the exceptions, which apps log and compare.
const answered = new WeakSet<object>();
const givenMessages = new WeakMap<object, string>();

/** A request was refused: 429 Too Many Requests, or 503 by an `adaptive` limit. Its body names the limits that refused. */
export class RateLimitExceededException extends HttpException {
  /**
   * Made by the guard; code that refuses by itself may throw one, too, and the answer has the same headers and body.
   *
   * @param result what all limits of the request said, such as `LimiterService.check` returns
   * @param message the body's message, 'Too many requests' unless given
   * @param limits the names of the limits that refused, those of `result` unless given
   * @param body the body, if it is not to be made of these
   * @param status the HTTP status, 429 unless given
   */
  constructor(
    readonly result: CheckResult,
    message: string = messages.exceeded(),
    readonly limits: readonly string[] = result.decisions.filter(({ allowed }) => !allowed).map(({ limit }) => limit),
    body?: object,
    status: number = HttpStatus.TOO_MANY_REQUESTS,
  ) {
    super(body ?? exceededBody(message, limits, status), status);
    this.message = message;
    if (body === undefined) givenMessages.set(this, message);
  }

  /** @internal Whether the guard made it, which has set its headers, and has made its body. */
  get isAnswered(): boolean {
    return answered.has(this);
  }

  /** @internal */
  markAnswered(): void {
    answered.add(this);
  }

  /** @internal The message that whoever made it gave it; nothing if that gave it a body. */
  get givenMessage(): string | undefined {
    return givenMessages.get(this);
  }

  /** @internal Says something else to the client. One exception may answer many: those that wait for one promise share its error. */
  answerWith(message: string, body: object): void {
    this.message = message;
    Object.assign(this, { response: body });
  }

  /** The longest wait of the limits that refused, in milliseconds; Infinity if the request can never fit. */
  get retryAfterMs(): number {
    return this.result.tightest.retryAfterMs;
  }
}

/** The body of a refusal unless another one is asked for. */
export function exceededBody(
  message: string,
  limits: readonly string[],
  status: number = HttpStatus.TOO_MANY_REQUESTS,
): Record<string, unknown> {
  return { statusCode: status, message, error: STATUS_CODES[status] ?? 'Error', limits };
}
