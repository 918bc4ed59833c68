import { consoleMessages } from '../engine/errors/messages/console.js';
import type { FieldError, Problem } from './api.js';

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  409: 'Conflict',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
};

/** The reason why a request fails, in the form of its response. */
export class ConsoleProblem extends Error {
  override readonly name = 'ConsoleProblem';

  constructor(
    readonly status: number,
    detail: string,
    readonly errors: readonly FieldError[] = [],
    /** Seconds after which to retry. */
    readonly retryAfter?: number,
  ) {
    super(detail);
  }

  /** The body of the response. */
  get body(): Problem {
    const { status, message: detail, errors } = this;
    return {
      type: 'about:blank',
      title: TITLES[status] ?? 'Error',
      status,
      detail,
      ...(errors.length > 0 && { errors: [...errors] }),
    };
  }
}

/** The problem of a request with invalid fields. */
export function wrongFields(errors: readonly FieldError[]): ConsoleProblem {
  const shown = errors.map(({ field, message }) => ({ field, message: consoleMessages.ofHeaders(message) }));
  return new ConsoleProblem(400, shown.map(({ field, message }) => `${field}: ${message}`).join('; '), shown);
}
