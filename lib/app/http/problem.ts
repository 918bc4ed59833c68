import { HttpStatus } from '@nestjs/common';

/** The media type of problem details (RFC 9457). */
export const PROBLEM_TYPE = 'application/problem+json';

/** The registry of the problem types of draft-ietf-httpapi-ratelimit-headers. */
const TYPES = 'https://iana.org/assignments/http-problem-types';

/** The problem of a request that limits rejected; `limits` are their names. */
export function quotaExceeded(
  detail: string,
  limits: readonly string[],
  status: number = HttpStatus.TOO_MANY_REQUESTS,
): Record<string, unknown> {
  return {
    type: `${TYPES}#quota-exceeded`,
    title: 'Quota Exceeded',
    status,
    detail,
    'violated-policies': limits,
  };
}

/** The problem of limits that cannot be checked, so that no request may pass, or of an overloaded instance. */
export function reducedCapacity(
  detail: string,
  status: number = HttpStatus.SERVICE_UNAVAILABLE,
): Record<string, unknown> {
  return {
    type: `${TYPES}#temporary-reduced-capacity`,
    title: 'Temporary Reduced Capacity',
    status,
    detail,
  };
}
