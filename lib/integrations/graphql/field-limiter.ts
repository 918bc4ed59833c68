import { type ExecutionContext, Injectable } from '@nestjs/common';
import { addProvider } from '../../nest/rate-limit.module.js';
import { RequestLimiter } from '../../nest/request/request-limiter.js';
import type { Awaitable } from '../../engine/util/awaitable.js';
import type { Operations } from './operations.js';

/** Lets the fields of an operation wait until the whole operation is decided. Other calls are limited as without GraphQL. */
@Injectable()
export class FieldLimiter extends RequestLimiter {
  /** Decides operations, once an app has started that imports the module. */
  operations: Operations | undefined;

  override beforeGuards(context: ExecutionContext): Awaitable<true> {
    const decided = this.operations?.beforeGuards(context);
    return decided === undefined ? super.beforeGuards(context) : decided.then(() => super.beforeGuards(context));
  }

  override afterGuards(context: ExecutionContext): Awaitable<true> {
    const decided = this.operations?.afterGuards(context);
    return decided === undefined ? super.afterGuards(context) : decided.then(() => super.afterGuards(context));
  }
}

// The guard gets it in place of its own.
addProvider({ provide: RequestLimiter, useClass: FieldLimiter });
