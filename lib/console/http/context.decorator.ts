import { createParamDecorator, type ExecutionContext } from '@nestjs/common';

/** Gives a handler the context of its request. */
export const Context: () => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext) => context,
);
