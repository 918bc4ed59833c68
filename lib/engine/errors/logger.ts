import { Logger } from '@nestjs/common';

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
