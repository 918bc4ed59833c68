import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { RequestDecision } from '../../request/request-decision.js';

/** Gives a handler what all limits of its request said, as a `RequestDecision`, or `undefined` if none applied. */
export const RateLimitDecision: () => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext): RequestDecision | undefined => RequestDecision.of(context),
);
