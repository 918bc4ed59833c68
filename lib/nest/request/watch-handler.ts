import type { CallHandler, ExecutionContext } from '@nestjs/common';
import { defer, type Observable } from 'rxjs';
import { clientClosedRequest } from './client-closed-request.js';
import { CallRun, runOf } from './call-run.js';
import { HandlerRun } from './handler-run.js';
import type { LimitedRequest } from './limited-request.js';

/** Runs a handler, and reports its end to the completions of its requests: that of the guards, and that of a middleware. */
export function watchHandler(
  requests: readonly LimitedRequest[],
  context: ExecutionContext,
  next: CallHandler,
): Observable<unknown> {
  const completions = requests.flatMap(({ completion }) => completion ?? []);
  if (completions.length === 0) return next.handle();
  const call = runOf(context.getArgs()) ?? new CallRun();
  for (const completion of completions) completion.follow(call);
  const run = new HandlerRun(call);
  const handled = run.enter(context.getHandler(), () => next.handle());
  return defer(() => {
    if (completions.some(({ wasClosed }) => wasClosed)) throw clientClosedRequest();
    for (const lease of requests.flatMap(({ leases }) => leases)) lease.keepAlive();
    const runs = completions.map((completion) => completion.handlerStarted());
    call.takeOver();
    return run.watch(handled, context, (end) => {
      for (const ended of runs) ended(end);
    });
  });
}
