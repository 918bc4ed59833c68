import { type ArgumentsHost, type ExecutionContext, Injectable } from '@nestjs/common';
import { retryAfter } from '../../app/http/header-format.js';
import type { RateLimitExceededException } from '../../app/http/rate-limit.exceptions.js';
import type { CheckedLimit, CheckResult, Decision } from '../../engine/limits/decision.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import type { Rule } from '../../app/rules/rule.js';
import { callOf, partsOf } from '../../app/transports/read-request.js';
import type { RequestReader } from '../../app/transports/request-reader.js';
import type { Awaitable } from '../../engine/util/awaitable.js';
import { Answers } from './answers.js';
import type { LimitedRequest } from './limited-request.js';
import { requestOfCall, searchDecided } from './requests.js';
import { ResponseHeaders } from './response-headers.js';
import { Transports } from './transports.js';

/** Completes rejections thrown by the app's own code like those of the guard: with headers, and with the configured body. */
@Injectable()
export class ThrownRefusals {
  constructor(
    private readonly transports: Transports,
    private readonly answers: Answers,
    private readonly headers: ResponseHeaders,
    private readonly limits: LimitRegistry,
  ) {}

  /** The reader of a call in this app. */
  readerOf(host: ArgumentsHost): RequestReader {
    return this.transports.of(host as ExecutionContext);
  }

  /** Rejects with the error that the call's transport uses, as the guard does; or with the error of its reader. */
  async refuse(exception: RateLimitExceededException, host: ArgumentsHost): Promise<never> {
    const reader = this.readerOf(host);
    if (reader.refuse === undefined) throw exception;
    throw await reader.refuse(exception, contextOf(requestOf(reader, host), host));
  }

  /** Sets the headers and the body of a rejection, unless the guard has. Returns a promise if a function of the app creates them. */
  complete(exception: RateLimitExceededException, host: ArgumentsHost): Awaitable<void> {
    if (exception.isAnswered) return undefined;
    const reader = this.readerOf(host);
    const request = requestOf(reader, host);
    const context = contextOf(request, host);
    const parts = partsOf(reader, host as ExecutionContext);
    const { result } = exception;
    const { shown, checked } = this.described(request, result);
    exception.leaveOut(checked.filter(({ limit }) => limit.hidden).map(({ limit }) => limit.name));
    if (checked.length > 0) this.headers.describe(parts, shown, checked, context);
    this.answers.complete(exception, this.ruleOf(request, result.tightest), { context, parts });
    const seconds = exception.hidesWait ? undefined : retryAfter(result, []);
    if (seconds !== undefined && !result.decisions.every((decision) => shown.decisions.includes(decision))) {
      this.headers.set(parts.response, 'Retry-After', seconds);
    }
    return this.answers.hasResolver(exception) ? this.answers.resolve(exception, { context, parts }) : undefined;
  }

  /** The result to report in the headers: the guard's checks, and the code's checks of limits that have a name. */
  private described(
    request: LimitedRequest | undefined,
    result: CheckResult,
  ): { shown: CheckResult; checked: CheckedLimit[] } {
    const decisions: Decision[] = [];
    const checked: CheckedLimit[] = [];
    const asked = new Set(result.decisions.map(({ limit }) => limit));
    for (const [index, entry] of (request?.entries ?? []).entries()) {
      const decision = request!.result!.decisions[index]!;
      if (asked.has(decision.limit)) continue;
      decisions.push(decision);
      checked.push(entry);
    }
    for (const decision of result.decisions) {
      const rule = this.ruleOf(request, decision);
      if (rule === undefined) continue;
      decisions.push(decision);
      checked.push(rule);
    }
    return { shown: { ...result, decisions }, checked };
  }

  private ruleOf(request: LimitedRequest | undefined, { limit: name }: Decision): Rule | undefined {
    const checked = request?.entries.find(({ rule }) => rule.name === name);
    return checked?.rule ?? this.limits.named.find(({ rule }) => rule.name === name)?.rule;
  }
}

function requestOf(reader: RequestReader, host: ArgumentsHost): LimitedRequest | undefined {
  return requestOfCall(callOf(reader, host as ExecutionContext)) ?? searchDecided(host.getArgs());
}

/** Filters do not know the handler, which functions of the app and readers may need. */
function contextOf(request: LimitedRequest | undefined, host: ArgumentsHost): ExecutionContext {
  return request?.context ?? (host as ExecutionContext);
}
