import type { ExecutionContext } from '@nestjs/common';

/** Decides calls that belong together, such as the fields of a GraphQL operation, in one check for all of them. */
export interface JointCalls {
  /**
   * Called as the guard sees a call. Returns a promise if the decision has to be awaited, which rejects with its refusal. A call that
   * was decided is marked as checked.
   */
  beforeGuards(context: ExecutionContext): Promise<void> | undefined;
  /** The same after all guards of the call. */
  afterGuards(context: ExecutionContext): Promise<void> | undefined;
}
