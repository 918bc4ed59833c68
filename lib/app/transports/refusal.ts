import type { HttpException } from '@nestjs/common';
import { RateLimitExceededException } from '../http/rate-limit-exceeded.exception.js';

/** The data of a rejection without an HTTP response: the body that it would have, and the wait. */
export function refusalData(exception: HttpException): object {
  const body = exception.getResponse();
  const data = typeof body === 'object' ? body : { statusCode: exception.getStatus(), message: body };
  return { status: 'error', ...data, ...(exception instanceof RateLimitExceededException && waitIn(exception)) };
}

/** The wait as a member of an error, unless it is hidden from clients. */
export function waitIn(exception: RateLimitExceededException): { readonly retryAfterMs?: number | null } {
  return exception.hidesWait ? {} : { retryAfterMs: waitOf(exception) };
}

/** The wait in a form that JSON supports: whole milliseconds, or `null` if the request can never fit. */
function waitOf({ retryAfterMs }: RateLimitExceededException): number | null {
  return Number.isFinite(retryAfterMs) ? Math.ceil(retryAfterMs) : null;
}
