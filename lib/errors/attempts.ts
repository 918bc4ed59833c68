import type { Logger } from '@nestjs/common';
import { OnceLogger } from './once-logger.js';
import { isPromise } from '../util/awaitable.js';

/** What the log says of a function of the user's that fails. */
export interface Told {
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
  call<T>(call: () => T, isRight: (got: T) => boolean, told: Told): T | undefined {
    try {
      const got = call();
      if (isRight(got)) return got;
      // A promise is no answer here, and may be rejected without anybody to hear of it.
      if (isPromise(got)) got.then(undefined, () => undefined);
      this.tell(told.message, told.wrong(got));
    } catch (error) {
      this.tell(told.message, error);
    }
    return undefined;
  }

  /** Tells that a function failed, unless it was told before. */
  tell(message: string, reason: unknown): void {
    this.log.error(message, reason instanceof Error ? reason.stack : String(reason));
  }
}
