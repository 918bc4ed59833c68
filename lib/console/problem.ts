import type { FieldError, Problem } from './api.js';

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/** Why a request is not done, as its answer says it. */
export class ConsoleProblem extends Error {
  override readonly name = 'ConsoleProblem';

  constructor(
    readonly status: number,
    detail: string,
    readonly errors: readonly FieldError[] = [],
    /** Seconds after which it may be tried again. */
    readonly retryAfter?: number,
  ) {
    super(detail);
  }

  /** Its answer. */
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

/** Some fields of a request are wrong. */
export function wrongFields(errors: readonly FieldError[]): ConsoleProblem {
  return new ConsoleProblem(400, errors.map(({ field, message }) => `'${field}' ${message}`).join('; '), errors);
}
