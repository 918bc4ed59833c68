import { Logger } from '@nestjs/common';

/** Logs what happens while limits are checked. */
export const logger = new Logger('RateLimit');

/** Logs what is found at start-up, and changes of the store's state. */
export const moduleLogger = new Logger('RateLimitModule');

/** Logs what is found of the console at start-up. */
export const consoleLogger = new Logger('RateLimitConsoleModule');
