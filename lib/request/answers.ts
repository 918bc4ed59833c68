import { type ExecutionContext, HttpException, Inject, Injectable, ServiceUnavailableException } from '@nestjs/common';
import { Attempts } from '../errors/attempts.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages/general.js';
import { isRefusal } from '../limits/check-result.js';
import { isPromise } from '../util/awaitable.js';
import { RATE_LIMIT_SETTINGS } from '../config/tokens.js';
import { type RateLimitSettings } from '../config/settings.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { CheckResult } from '../limits/decision.js';
import { PROBLEM_TYPE, quotaExceeded, reducedCapacity } from '../http/problem.js';
import { exceededBody, RateLimitExceededException } from '../http/rate-limit-exceeded.exception.js';
import { deniedProblem, RateLimitDeniedException } from '../http/rate-limit-denied.exception.js';
import { overloadStatus, type RefusalAnswer } from '../http/refusal-answer.js';
import type { LimitedRequest } from './limited-request.js';
import type { PendingCheck } from './pending-check.js';
import { ResponseHeaders } from './response-headers.js';

/** A call to be answered. */
type AnsweredCall = Pick<LimitedRequest, 'context' | 'parts'>;

/** Answers requests: describes limits in headers, and refuses with an exception. */
@Injectable()
export class Answers {
  private readonly attempts = new Attempts(logger);

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly headers: ResponseHeaders,
  ) {}

  /** Describes a check in the headers. Throws if a limit refused, or the store failed. */
  describe(request: LimitedRequest, check: PendingCheck): void {
    try {
      check.conclude();
    } catch (error) {
      throw error instanceof RateLimitStoreError ? this.unavailable(request, error) : error;
    }
    const result = request.record(check);
    if (!result.allowed && result.tightest.source === 'list') throw this.denied(request);
    this.headers.describe(request.parts, result, request.entries);
    if (!result.allowed) throw this.exceeded(request, result, request.limits);
  }

  /** Refuses a request because of a list. The client learns no more than that. */
  denied(request: LimitedRequest): RateLimitDeniedException {
    const status = this.settings.options.lists?.status ?? 403;
    return new RateLimitDeniedException(status, this.setsProblemType(request) ? deniedProblem(status) : undefined);
  }

  /** Refuses a request because the store failed, and a limit says `'deny'`. */
  private unavailable(request: LimitedRequest, cause: unknown): HttpException {
    return this.notNow(request, messages.unavailable(), cause);
  }

  /** Refuses a request that was to be held, because the app shuts down. */
  shuttingDown(request: LimitedRequest): HttpException {
    return this.notNow(request, messages.shuttingDown(), new RateLimitStoreError(messages.closed()));
  }

  /** The error that the request's transport uses for a refusal; or the error of its reader, if that fails. */
  async translate({ reader, context }: LimitedRequest, error: unknown): Promise<unknown> {
    // A reader may look at the handler, which a middleware does not have.
    const hasHandler = (context.getHandler() as Function | null) !== null;
    if (!(error instanceof HttpException) || reader.refuse === undefined || !hasHandler) return error;
    try {
      return await reader.refuse(error, context);
    } catch (failure) {
      return failure;
    }
  }

  /** The exception names all limits that refused. The limit with the longest wait determines the rest. */
  private exceeded(
    request: LimitedRequest,
    result: CheckResult,
    limits: readonly CompiledLimit[],
  ): RateLimitExceededException {
    const { context } = request;
    const { limit, rule } = request.entries[result.decisions.indexOf(result.tightest)]!;
    const { answer } = rule;
    const status = overloadStatus(limit);
    const refused = limits.filter((each, index) => isRefusal(each, result.decisions[index]!));
    const names = refused.map(({ name }) => name);
    const message = this.message(
      answer,
      context,
      result,
      status === undefined ? messages.exceeded : messages.overloaded,
    );
    const body = this.body(answer, request, result, this.usualBody(request, message, names, status));
    const exception = new RateLimitExceededException(result, message, names, body, status);
    exception.markAnswered();
    return exception;
  }

  /** Completes a refusal thrown by code with what it did not set itself. `answer` is that of its tightest limit, if known. */
  complete(exception: RateLimitExceededException, answer: RefusalAnswer | undefined, call: AnsweredCall): void {
    const given = exception.givenMessage;
    if (given === undefined) return;
    const { result, limits } = exception;
    const says = answer ?? { message: undefined, body: this.settings.body };
    const message = given === messages.exceeded() ? this.message(says, call.context, result, () => given) : given;
    const status = exception.getStatus() === 429 ? undefined : exception.getStatus();
    const usual = this.usualBody(call, message, limits, status);
    exception.answerWith(message, this.body(says, call, result, usual));
  }

  private usualBody(
    call: AnsweredCall,
    message: string,
    names: readonly string[],
    status: number | undefined,
  ): Record<string, unknown> {
    return this.setsProblemType(call) ? problemOf(message, names, status) : exceededBody(message, names, status);
  }

  private notNow(request: LimitedRequest, message: string, cause: unknown): HttpException {
    this.headers.set(request.parts.response, 'Retry-After', '1');
    const body = this.setsProblemType(request) ? reducedCapacity(message) : message;
    const exception = new ServiceUnavailableException(body, { cause });
    exception.message = message;
    return exception;
  }

  /** Whether to use problem details. Frameworks label any object as plain JSON unless its type is set. */
  private setsProblemType({ context, parts }: AnsweredCall): boolean {
    if (!this.settings.problem || context.getType() !== 'http') return false;
    this.headers.setType(parts.response, PROBLEM_TYPE);
    return true;
  }

  private message(answer: RefusalAnswer, context: ExecutionContext, result: CheckResult, usual: () => string): string {
    const { message } = answer;
    if (typeof message !== 'function') return message ?? usual();
    const made = this.attempt('message', result, () => message(context, result), isString);
    return made ?? usual();
  }

  private body(
    answer: RefusalAnswer,
    { context }: AnsweredCall,
    result: CheckResult,
    usual: Record<string, unknown>,
  ): object {
    const make = answer.body;
    if (make === undefined) return usual;
    return this.attempt('body', result, () => make(context, result, { ...usual }), isBody) ?? usual;
  }

  /** If a user's function fails, a refusal must not become another error. */
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

function problemOf(message: string, names: readonly string[], status: number | undefined): Record<string, unknown> {
  if (status === undefined) return quotaExceeded(message, names);
  return { ...reducedCapacity(message, status), 'violated-policies': names };
}

const isString = (made: unknown) => typeof made === 'string';
const isBody = (made: unknown) => typeof made === 'object' && made !== null && !Array.isArray(made) && !isPromise(made);
