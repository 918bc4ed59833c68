import type { ExecutionContext, Type } from '@nestjs/common';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckResult } from '../../engine/limits/decision.js';
import type { Awaitable } from '../../engine/util/awaitable.js';

/** The message of a rejection: a text, or a function of the request's context and the result of its limits. */
export type RefusalMessage = string | ((context: ExecutionContext, result: CheckResult) => string);

/** Returns the JSON body of a rejection. It receives the default body, to extend or replace it. */
export type RefusalBody = (
  context: ExecutionContext,
  result: CheckResult,
  body: Readonly<Record<string, unknown>>,
) => object;

/** The response to a rejected request. */
export interface RefusalResponse {
  /** The HTTP status: a whole number from 400 to 599. */
  readonly status: number;
  /** The JSON body. */
  readonly body: object;
  /** Additional headers. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the response to a rejected request, or a part of it. The default applies to the rest. */
export type RefusalFunction = (
  context: ExecutionContext,
  result: CheckResult,
  usual: RefusalResponse,
) => Partial<RefusalResponse> | Promise<Partial<RefusalResponse>>;

/** An injectable class that returns responses. If it injects other classes, it must be a provider of a module. */
export interface RefusalResolver {
  /** Returns the response, or a part of it. `usual` is the default response. */
  resolve(...asked: Parameters<RefusalFunction>): ReturnType<RefusalFunction>;
}

/** A function that returns the response to a rejected request, or an injectable class that implements `RefusalResolver`. */
export type RefusalOption = RefusalFunction | Type<RefusalResolver>;

/** The expected value of an `answer` option. */
export const REFUSAL_EXPECTED = 'a function, or an injectable class that implements RefusalResolver';

/** One limit's response to a rejected request. */
export interface RefusalAnswer {
  readonly message: RefusalMessage | undefined;
  readonly body: RefusalBody | undefined;
  readonly status: number | undefined;
  readonly resolve: ((...asked: Parameters<RefusalFunction>) => Awaitable<unknown>) | undefined;
}

/** The range of statuses of rejections. */
export const MIN_STATUS = 400;
export const MAX_STATUS = 599;

/** The status of a rejection by an adaptive limit: the server is overloaded, and the client did nothing wrong. */
export function overloadStatus({ algorithm, parameters }: CompiledLimit): number | undefined {
  return algorithm.adapting?.status(parameters);
}

/** The media type of problem details (RFC 9457). */
export const PROBLEM_TYPE = 'application/problem+json';

/** The registry of the problem types of draft-ietf-httpapi-ratelimit-headers. */
const TYPES = 'https://iana.org/assignments/http-problem-types';

/** The problem of a request that limits rejected; `limits` are their names. */
export function quotaExceeded(detail: string, limits: readonly string[], status = 429): Record<string, unknown> {
  return {
    type: `${TYPES}#quota-exceeded`,
    title: 'Quota Exceeded',
    status,
    detail,
    'violated-policies': limits,
  };
}

/** The problem of limits that cannot be checked, so that no request may pass, or of an overloaded instance. */
export function reducedCapacity(detail: string, status = 503): Record<string, unknown> {
  return {
    type: `${TYPES}#temporary-reduced-capacity`,
    title: 'Temporary Reduced Capacity',
    status,
    detail,
  };
}
