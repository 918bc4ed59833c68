import type { Logger } from '@nestjs/common';
import { OnceLogger } from './once-logger.js';
import { isPromise } from '../util/awaitable.js';

/** What the log says of a function of the user's that fails. */
export interface FailureLog {
  readonly message: string;
  /** Why what it gave cannot be used. */
  readonly wrong: (got: unknown) => string;
}

/** Calls functions of the user's whose failure must not make a request fail, or end the process. The log has each message once. */
export class Attempts {
  private readonly log: OnceLogger;

  constructor(logger: Logger) {
    this.log = new OnceLogger(logger);
  }

  /** What a function gives; nothing if it throws, or gives what is not right. */
  call<T>(call: () => T, isRight: (got: T) => boolean, failure: FailureLog): T | undefined {
    try {
      const got = call();
      if (isRight(got)) return got;
      // A promise is no answer here, and its rejection must not end the process.
      if (isPromise(got)) got.then(undefined, () => undefined);
      this.report(failure.message, failure.wrong(got));
    } catch (error) {
      this.report(failure.message, error);
    }
    return undefined;
  }

  /** Logs that a function failed, unless it did so before. */
  report(message: string, reason: unknown): void {
    this.log.error(message, reason instanceof Error ? reason.stack : String(reason));
  }
}
