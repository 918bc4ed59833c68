import {
  type ExecutionContext,
  type HttpException,
  Inject,
  Injectable,
  ServiceUnavailableException,
} from '@nestjs/common';
import { Attempts } from '../errors/attempts.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages.js';
import { isPromise } from '../util/awaitable.js';
import { RATE_LIMIT_SETTINGS } from '../config/tokens.js';
import { type RateLimitSettings } from '../config/settings.js';
import type { CheckResult } from '../limits/decision.js';
import { PROBLEM_TYPE, quotaExceeded, reducedCapacity } from '../http/problem.js';
import { exceededBody, RateLimitExceededException } from '../http/rate-limit-exceeded.exception.js';
import type { RefusalAnswer } from '../http/refusal-answer.js';
import { ResponseHeaders } from './response-headers.js';

/** Makes what refused requests are answered with. */
@Injectable()
export class Refusals {
  private readonly attempts = new Attempts(logger);

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly headers: ResponseHeaders,
  ) {}

  /** Limits refused: `names` are theirs, and `answer` is that of the one that binds most. */
  exceeded(
    context: ExecutionContext,
    response: object | undefined,
    result: CheckResult,
    names: readonly string[],
    answer: RefusalAnswer | undefined,
  ): RateLimitExceededException {
    const message = this.message(answer, context, result);
    const isProblem = this.tellOfProblem(context, response);
    const usual = isProblem ? quotaExceeded(message, names) : exceededBody(message, names);
    return new RateLimitExceededException(result, message, names, this.body(answer, context, result, usual));
  }

  /** The store failed, and a limit says `'deny'`. */
  unavailable(context: ExecutionContext, response: object | undefined, cause: unknown): HttpException {
    return this.notNow(context, response, messages.unavailable(), cause);
  }

  /** The request was to be held, and the app shuts down. */
  shuttingDown(context: ExecutionContext, response: object | undefined): HttpException {
    return this.notNow(context, response, messages.shuttingDown(), new RateLimitStoreError(messages.closed()));
  }

  private notNow(
    context: ExecutionContext,
    response: object | undefined,
    message: string,
    cause: unknown,
  ): HttpException {
    this.headers.set(response, 'Retry-After', '1');
    const body = this.tellOfProblem(context, response) ? reducedCapacity(message) : message;
    const exception = new ServiceUnavailableException(body, { cause });
    exception.message = message;
    return exception;
  }

  /** Whether problem details are wanted. The frameworks call any object plain JSON unless they are told better. */
  private tellOfProblem(context: ExecutionContext, response: object | undefined): boolean {
    if (!this.settings.problem || context.getType() !== 'http') return false;
    this.headers.setType(response, PROBLEM_TYPE);
    return true;
  }

  private message(answer: RefusalAnswer | undefined, context: ExecutionContext, result: CheckResult): string {
    const { message } = answer ?? {};
    if (typeof message !== 'function') return message ?? messages.exceeded();
    const made = this.attempt('message', result, () => message(context, result), isString);
    return made ?? messages.exceeded();
  }

  private body(
    answer: RefusalAnswer | undefined,
    context: ExecutionContext,
    result: CheckResult,
    usual: Record<string, unknown>,
  ): object {
    const make = answer?.body;
    if (make === undefined) return usual;
    return this.attempt('body', result, () => make(context, result, { ...usual }), isBody) ?? usual;
  }

  /** A function of the user's that fails must not make another error of a refusal. */
  private attempt<T>(
    option: string,
    { tightest }: CheckResult,
    call: () => T,
    isRight: (made: T) => boolean,
  ): T | undefined {
    const message = messages.answerFailed(option, tightest.limit);
    return this.attempts.call(call, isRight, { message, wrong: messages.wrongAnswer });
  }
}

const isString = (made: unknown) => typeof made === 'string';
const isBody = (made: unknown) => typeof made === 'object' && made !== null && !Array.isArray(made) && !isPromise(made);
