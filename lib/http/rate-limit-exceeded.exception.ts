import { HttpException, HttpStatus } from '@nestjs/common';
import type { CompiledLimit } from '../algorithms/limit.js';
import { messages } from '../errors/messages.js';
import type { CheckResult } from '../stores/store.js';

/** A request was refused: 429 Too Many Requests. Its body names the limits that refused. */
export class RateLimitExceededException extends HttpException {
  constructor(
    /** What all limits of the request said. */
    readonly result: CheckResult,
    limits: readonly CompiledLimit[],
    message: string = messages.exceeded(),
  ) {
    const refused = result.decisions.filter(({ allowed }, index) => !allowed && limits[index]?.shadow !== true);
    super(
      {
        statusCode: HttpStatus.TOO_MANY_REQUESTS,
        message,
        error: 'Too Many Requests',
        limits: refused.map(({ limit }) => limit),
      },
      HttpStatus.TOO_MANY_REQUESTS,
    );
  }
}
