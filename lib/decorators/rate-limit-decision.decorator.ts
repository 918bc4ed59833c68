import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { findState } from '../request/request-state.js';
import type { CheckResult } from '../stores/store.js';

/** Gives a handler what all limits of its request said, or `undefined` if none applied. */
export const RateLimitDecision: () => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext): CheckResult | undefined => findState(context)?.result,
);
