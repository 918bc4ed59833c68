import type { RateLimitErrorCode } from '../../engine/errors/codes.js';
import { HttpException, HttpStatus } from '@nestjs/common';
import { listMessages } from '../../engine/errors/messages/list.js';
import { messages } from '../../engine/errors/messages/general.js';

/** The HTTP statuses with which a list refuses. */
export type DeniedStatus = 403 | 429;

/** A list refused the request: 403 Forbidden, or the status of the module's `lists.status`. */
export class RateLimitDeniedException extends HttpException {
  /** The error's code: `'SLUICE_DENIED'`. */
  declare readonly code: RateLimitErrorCode;

  static {
    // Of the class, not of each rejection, and writable: apps add properties to exceptions.
    Object.defineProperty(this.prototype, 'code', { value: 'SLUICE_DENIED', writable: true, configurable: true });
  }

  /**
   * Thrown by the guard; code that refuses by itself may throw one, too.
   *
   * @param status the HTTP status
   * @param body the body; by default the one that Nest's own exceptions have
   */
  constructor(status: DeniedStatus = HttpStatus.FORBIDDEN, body: object = deniedBody(status)) {
    super(body, status);
    this.message = messageOf(status);
  }
}

/** The same as problem details (RFC 9457); no type of its own is needed here. */
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
