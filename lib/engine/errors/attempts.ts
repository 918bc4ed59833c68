import type { Logger } from '@nestjs/common';
import { OnceLogger } from './logger.js';
import { isPromise } from '../util/awaitable.js';
import { reasonOf } from '../util/reason-of.js';

/** The log message for a user's function that fails. */
export interface FailureLog {
  readonly message: string;
  /** The reason, for an invalid result. */
  readonly wrong: (got: unknown) => string;
}

/** Calls users' functions whose failure must not fail a request or terminate the process. Logs each message once. */
export class Attempts {
  private readonly log: OnceLogger;

  constructor(logger: Logger) {
    this.log = new OnceLogger(logger);
  }

  /** Returns the result of a function; `undefined` if it throws, or its result is invalid. */
  call<T>(call: () => T, isValid: (got: T) => boolean, failure: FailureLog): T | undefined {
    try {
      const got = call();
      if (isValid(got)) return got;
      // A promise is an invalid result here. Its rejection must be handled.
      if (isPromise(got)) got.then(undefined, () => undefined);
      this.report(failure.message, failure.wrong(got));
    } catch (error) {
      this.report(failure.message, error);
    }
    return undefined;
  }

  /** Logs that a function failed, unless the message was logged before. */
  report(message: string, reason: unknown): void {
    this.log.error(message, reason instanceof Error ? reason.stack : reasonOf(reason));
  }
}
