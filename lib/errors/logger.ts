import { Logger } from '@nestjs/common';

/** The logger of the package. */
export const logger = new Logger('RateLimit');
