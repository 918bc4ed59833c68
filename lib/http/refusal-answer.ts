import type { ExecutionContext } from '@nestjs/common';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { CheckResult } from '../limits/decision.js';

/** The message of a refusal: a text, or a function that makes one from the request and the result of its limits. */
export type RefusalMessage = string | ((context: ExecutionContext, result: CheckResult) => string);

/** Makes the JSON body of a refusal. It gets the default body, to extend or replace it. */
export type RefusalBody = (
  context: ExecutionContext,
  result: CheckResult,
  body: Readonly<Record<string, unknown>>,
) => object;

/** What one limit answers when it refuses. */
export interface RefusalAnswer {
  readonly message: RefusalMessage | undefined;
  readonly body: RefusalBody | undefined;
}

/** The status of a refusal by an adaptive limit: the server is overloaded, and the client did nothing wrong. */
export function overloadStatus({ algorithm, parameters }: CompiledLimit): number | undefined {
  return algorithm.adapting?.status(parameters);
}
