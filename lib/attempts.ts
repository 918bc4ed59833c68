import type { Logger } from '@nestjs/common';
import { isPromise } from './plan/promises.js';

/** What the log says of a function of the user's that fails. */
interface Told {
  readonly message: string;
  /** Why what it gave cannot be used. */
  readonly wrong: (got: unknown) => string;
}

/** Calls functions of the user's whose failure must not make a request fail, or end the process. The log tells of each once. */
export class Attempts {
  private readonly failed = new WeakSet<object>();

  constructor(private readonly logger: Logger) {}

  /** What a function gives; nothing if it throws, or gives what is not right. */
  call<T>(made: object, call: () => T, isRight: (got: T) => boolean, told: Told): T | undefined {
    try {
      const got = call();
      if (isRight(got)) return got;
      // A promise is no answer here, and may be rejected without anybody to hear of it.
      if (isPromise(got)) got.then(undefined, () => undefined);
      this.tell(made, told.message, told.wrong(got));
    } catch (error) {
      this.tell(made, told.message, error);
    }
    return undefined;
  }

  /** Tells that a function failed, unless it has failed before. */
  tell(made: object, message: string, reason: unknown): void {
    if (this.failed.has(made)) return;
    this.failed.add(made);
    this.logger.error(message, reason instanceof Error ? reason.stack : String(reason));
  }
}
