import {
  type ExecutionContext,
  HttpException,
  HttpStatus,
  Inject,
  Injectable,
  ServiceUnavailableException,
} from '@nestjs/common';
import { Attempts, logger } from '../../engine/errors/logger.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { type CheckResult, isRefusal } from '../../engine/limits/decision.js';
import { isPromise } from '../../engine/util/awaitable.js';
import { RATE_LIMIT_SETTINGS } from '../../app/config/tokens.js';
import { type RateLimitSettings } from '../../app/config/settings.js';
import {
  overloadStatus,
  PROBLEM_TYPE,
  quotaExceeded,
  reducedCapacity,
  type RefusalAnswer,
  type RefusalResponse,
} from '../../app/http/refusal-answer.js';
import {
  deniedProblem,
  exceededBody,
  RateLimitDeniedException,
  RateLimitExceededException,
} from '../../app/http/rate-limit.exceptions.js';
import type { Rule } from '../../app/rules/rule.js';
import { AnswerDeadline } from '../../app/rules/by-request/resolved-limits.js';
import { assertSendable, readRefusal, withStatus } from './refusal-response.js';
import type { LimitedRequest } from './limited-request.js';
import type { PendingCheck } from './request-check.js';
import { ResponseHeaders } from './response-headers.js';

type AnsweredCall = Pick<LimitedRequest, 'context' | 'parts'>;

/** Creates the responses to requests: reports limits in headers, and throws the exceptions of rejections. */
@Injectable()
export class Answers {
  private readonly attempts = new Attempts(logger);
  /** The functions that create the response to a rejection, until it is sent. */
  private readonly resolvers = new WeakMap<RateLimitExceededException, NonNullable<RefusalAnswer['resolve']>>();
  private readonly deadline: AnswerDeadline;

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly headers: ResponseHeaders,
  ) {
    this.deadline = new AnswerDeadline(settings.resolveTimeoutMs);
  }

  /** Reports a check in the headers. Throws if a limit rejected the request, or the store failed. */
  describe(request: LimitedRequest, check: PendingCheck): void {
    try {
      check.conclude();
    } catch (error) {
      // The store fails, and a limit's policy is 'deny'.
      throw error instanceof RateLimitStoreError ? this.notNow(request, messages.unavailable(), error) : error;
    }
    const result = request.record(check);
    if (!result.allowed && result.tightest.source === 'list') throw this.denied(request);
    this.headers.describe(request.parts, result, request.entries, request.context);
    if (!result.allowed) throw this.exceeded(request, result);
  }

  /** The exception for a request that a list denies. It reveals nothing else to the client. */
  denied(request: LimitedRequest): RateLimitDeniedException {
    const status = this.settings.options.lists?.status ?? 403;
    return new RateLimitDeniedException(status, this.setsProblemType(request) ? deniedProblem(status) : undefined);
  }

  /** The exception for a request that should be held while the app shuts down. */
  shuttingDown(request: LimitedRequest): HttpException {
    const cause = new RateLimitStoreError(messages.closed(), { code: 'SLUICE_SHUTTING_DOWN' });
    return this.notNow(request, messages.shuttingDown(), cause);
  }

  /** The error that the request's transport uses for a rejection; or the error of its reader, if that throws. */
  async translate(request: LimitedRequest, error: unknown): Promise<unknown> {
    const { reader, context } = request;
    if (error instanceof RateLimitExceededException) await this.resolve(error, request);
    // A reader may use the handler, which does not exist in a middleware.
    const hasHandler = (context.getHandler() as Function | null) !== null;
    if (!(error instanceof HttpException) || reader.refuse === undefined || !hasHandler) return error;
    try {
      return await reader.refuse(error, context);
    } catch (failure) {
      return failure;
    }
  }

  /** The exception contains the names of all limits that rejected. The limit with the longest wait determines everything else. */
  private exceeded(request: LimitedRequest, result: CheckResult): RateLimitExceededException {
    const { context, entries } = request;
    const { limit, rule } = entries[result.decisions.indexOf(result.tightest)]!;
    const { answer } = rule.settings;
    const overload = overloadStatus(limit);
    const refused = request.limits.filter((each, index) => isRefusal(each, result.decisions[index]!) && !each.hidden);
    const names = refused.map(({ name }) => name);
    const usualMessage = overload === undefined ? messages.exceeded : messages.overloaded;
    const message = this.message(answer, context, result, usualMessage);
    const status = overload ?? answer.status ?? HttpStatus.TOO_MANY_REQUESTS;
    const usual = this.usualBody(request, message, names, status, overload !== undefined);
    const body = this.body(answer, request, result, usual);
    const exception = new RateLimitExceededException(result, message, names, body, status);
    exception.markAnswered();
    if (limit.withoutRetryAfter) exception.hideWait();
    if (answer.resolve !== undefined) this.resolvers.set(exception, answer.resolve);
    return exception;
  }

  /** Returns true if the app still has to create the response to a rejection. */
  hasResolver(exception: RateLimitExceededException): boolean {
    return this.resolvers.has(exception);
  }

  /** Lets the app create the response to a rejection, or a part of it. If that fails, the rejection stays unchanged. */
  async resolve(exception: RateLimitExceededException, call: AnsweredCall): Promise<void> {
    const resolve = this.resolvers.get(exception);
    if (resolve === undefined) return;
    this.resolvers.delete(exception);
    const { context, parts } = call;
    const body = exception.getResponse() as object;
    const usual: RefusalResponse = { status: exception.getStatus(), body: { ...body }, headers: {} };
    const { result } = exception;
    try {
      const given = resolve(context, result, usual);
      const made = isPromise(given) ? await this.deadline.of(given, () => new Error(messages.answerLate())) : given;
      const { status = usual.status, body: own, headers = {} } = readRefusal(made);
      exception.answerWith(exception.message, own ?? withStatus(body, status), status);
      for (const [name, value] of Object.entries(headers)) this.headers.set(parts.response, name, value);
    } catch (error) {
      this.attempts.report(messages.answerFailed('answer', result.tightest.limit), error);
    }
  }

  /** Adds everything to a rejection that the code that threw it has not set. `rule` belongs to its tightest limit, if that is known. */
  complete(exception: RateLimitExceededException, rule: Rule | undefined, call: AnsweredCall): void {
    const answer = rule?.settings.answer ?? this.unknownAnswer;
    if (rule?.limit.withoutRetryAfter ?? !this.settings.retryAfter) exception.hideWait();
    const given = exception.givenMessage;
    if (given === undefined) return;
    if (answer.resolve !== undefined) this.resolvers.set(exception, answer.resolve);
    const { result, limits } = exception;
    const message = given === messages.exceeded() ? this.message(answer, call.context, result, () => given) : given;
    const own = exception.getStatus();
    const status = exception.hasOwnStatus ? own : (answer.status ?? own);
    const isOverload = exception.hasOwnStatus && own !== (HttpStatus.TOO_MANY_REQUESTS as number);
    const usual = this.usualBody(call, message, limits, status, isOverload);
    exception.answerWith(message, this.body(answer, call, result, usual), status);
  }

  private usualBody(
    call: AnsweredCall,
    message: string,
    names: readonly string[],
    status: number,
    isOverload: boolean,
  ): Record<string, unknown> {
    if (!this.setsProblemType(call)) return exceededBody(message, names, status);
    return isOverload
      ? { ...reducedCapacity(message, status), 'violated-policies': names }
      : quotaExceeded(message, names, status);
  }

  /** The response of a limit that is not known. */
  private get unknownAnswer(): RefusalAnswer {
    return { message: undefined, body: this.settings.body, status: undefined, resolve: undefined };
  }

  private notNow(request: LimitedRequest, message: string, cause: unknown): HttpException {
    if (this.settings.retryAfter) this.headers.set(request.parts.response, 'Retry-After', '1');
    const body = this.setsProblemType(request) ? reducedCapacity(message) : message;
    const exception = new ServiceUnavailableException(body, { cause });
    exception.message = message;
    return exception;
  }

  /**
   * Returns true if the body should be in the format of problem details. Frameworks label any object as plain JSON unless its type is set.
   */
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
    const made = () => {
      const body = make(context, result, { ...usual });
      if (isBody(body)) assertSendable(body);
      return body;
    };
    return this.attempt('body', result, made, isBody) ?? usual;
  }

  /** Calls a function of the app. If it throws, the rejection must not become a different error. */
  private attempt<T>(
    option: string,
    { tightest }: CheckResult,
    call: () => T,
    isValid: (made: T) => boolean,
  ): T | undefined {
    const message = messages.answerFailed(option, tightest.limit);
    return this.attempts.call(call, isValid, { message, wrong: messages.wrongAnswer });
  }
}

const isString = (made: unknown) => typeof made === 'string';
const isBody = (made: unknown) => typeof made === 'object' && made !== null && !Array.isArray(made) && !isPromise(made);
