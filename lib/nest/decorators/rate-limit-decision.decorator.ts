import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { RequestDecision } from '../../request/request-decision.js';

/** Gives a handler the `RequestDecision` of all limits of its request, or `undefined` if none applied. */
export const RateLimitDecision: () => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext): RequestDecision | undefined => RequestDecision.of(context),
);
