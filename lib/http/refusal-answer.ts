import type { ExecutionContext } from '@nestjs/common';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { CheckResult } from '../limits/decision.js';

/** What a refusal says to its reader: a text, or a function that makes one of the request and of what its limits said. */
export type RefusalMessage = string | ((context: ExecutionContext, result: CheckResult) => string);

/** Makes the JSON body of a refusal. It is given the body that would be sent without it, to add to or to replace. */
export type RefusalBody = (
  context: ExecutionContext,
  result: CheckResult,
  body: Readonly<Record<string, unknown>>,
) => object;

/** What one limit says when it refuses. */
export interface RefusalAnswer {
  readonly message: RefusalMessage | undefined;
  readonly body: RefusalBody | undefined;
}

/** The status of a refusal by a limit that adapts: not the client did too much. */
export function overloadStatus({ algorithm, parameters }: CompiledLimit): number | undefined {
  return algorithm.adapting?.status(parameters);
}
