// The protocol between the console's server and its page: JSON, in which no number is infinite. Undefined members are left out.
// Times are in milliseconds since the epoch on the Redis server's clock, and shares are from 0 to 1, unless a member says otherwise.

export type * from './api/overview.js';
export type * from './api/incidents.js';
export type * from './api/lookup.js';
export type * from './api/changes.js';

/** The header of the page's requests, which forms can't send. */
export const CONSOLE_HEADER = 'x-rate-limit-console';

/** The reason why a request failed, as problem details (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  errors?: FieldError[];
}

export interface FieldError {
  /** The field, such as `duration` or `patch.rate`. */
  field: string;
  message: string;
}
