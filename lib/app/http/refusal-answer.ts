import type { ExecutionContext, Type } from '@nestjs/common';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckResult } from '../../engine/limits/decision.js';
import type { Awaitable } from '../../engine/util/awaitable.js';

/** The message of a refusal: a text, or a function that makes one from the request and the result of its limits. */
export type RefusalMessage = string | ((context: ExecutionContext, result: CheckResult) => string);

/** Makes the JSON body of a refusal. It gets the default body, to extend or replace it. */
export type RefusalBody = (
  context: ExecutionContext,
  result: CheckResult,
  body: Readonly<Record<string, unknown>>,
) => object;

/** The response to a refused request. */
export interface RefusalResponse {
  /** The HTTP status: a whole number from 400 to 599. */
  readonly status: number;
  /** The JSON body. */
  readonly body: object;
  /** Headers to set in addition. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Makes the response to a refused request, or a part of it; the rest stays as it is without it. */
export type RefusalFunction = (
  context: ExecutionContext,
  result: CheckResult,
  usual: RefusalResponse,
) => Partial<RefusalResponse> | Promise<Partial<RefusalResponse>>;

/** An injectable class that makes responses. A class that injects others must be a provider of a module. */
export interface RefusalResolver {
  /** Returns the response, or a part of it. `usual` is what is sent without it. */
  resolve(...asked: Parameters<RefusalFunction>): ReturnType<RefusalFunction>;
}

/** A function that makes the response to a refused request, or an injectable class that implements `RefusalResolver`. */
export type RefusalOption = RefusalFunction | Type<RefusalResolver>;

/** What an option of it takes. */
export const REFUSAL_EXPECTED = 'a function, or an injectable class that implements RefusalResolver';

/** What one limit answers when it refuses. */
export interface RefusalAnswer {
  readonly message: RefusalMessage | undefined;
  readonly body: RefusalBody | undefined;
  readonly status: number | undefined;
  readonly resolve: ((...asked: Parameters<RefusalFunction>) => Awaitable<unknown>) | undefined;
}

/** The statuses of refusals. */
export const MIN_STATUS = 400;
export const MAX_STATUS = 599;

/** The status of a refusal by an adaptive limit: the server is overloaded, and the client did nothing wrong. */
export function overloadStatus({ algorithm, parameters }: CompiledLimit): number | undefined {
  return algorithm.adapting?.status(parameters);
}
