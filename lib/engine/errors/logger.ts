import { Logger } from '@nestjs/common';
import { isPromise } from '../util/awaitable.js';
import { reasonOf } from './reasons.js';

/** Logs events while limits are checked. */
export const logger = new Logger('RateLimit');

/** Logs findings at start-up, and changes of the store's state. */
export const moduleLogger = new Logger('RateLimitModule');

/** Logs findings about the console at start-up. */
export const consoleLogger = new Logger('RateLimitConsoleModule');

/** The maximum number of different texts to log. Texts that contain a request's own values would be unlimited. */
const MAX_TEXTS = 1000;

/** Logs each text once. */
export class OnceLogger {
  private readonly logged = new Set<string>();

  constructor(private readonly logger: Logger) {}

  warn(text: string): void {
    if (this.isNew(text)) this.logger.warn(text);
  }

  /** `reason` is the rest of the line, such as a stack. */
  error(text: string, reason?: unknown): void {
    if (this.isNew(text)) this.logger.error(text, ...(reason === undefined ? [] : [reason]));
  }

  private isNew(text: string): boolean {
    if (this.logged.size >= MAX_TEXTS || this.logged.has(text)) return false;
    this.logged.add(text);
    return true;
  }
}

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
