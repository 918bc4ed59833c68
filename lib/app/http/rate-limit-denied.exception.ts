import type { RateLimitErrorCode } from '../../engine/errors/errors.js';
import { HttpException, HttpStatus } from '@nestjs/common';
import { listMessages } from '../../engine/errors/messages/rates.js';
import { messages } from '../../engine/errors/messages/general.js';

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
  return { type: 'about:blank', title: titleOf(status), status, detail: messageOf(status) };
}

function deniedBody(status: DeniedStatus): Record<string, unknown> {
  return { statusCode: status, message: messageOf(status), error: titleOf(status) };
}

function messageOf(status: DeniedStatus): string {
  return status === 403 ? listMessages.forbidden() : messages.exceeded();
}

function titleOf(status: DeniedStatus): string {
  return status === 403 ? 'Forbidden' : 'Too Many Requests';
}
