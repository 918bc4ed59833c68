import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { RequestDecision } from '../request/request-decision.js';

/** Injects the `RequestDecision` of all limits of a request into a handler; `undefined` if no limit applied. */
export const RateLimitDecision: () => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext): RequestDecision | undefined => RequestDecision.of(context),
);
