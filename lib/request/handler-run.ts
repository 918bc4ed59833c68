import type { ExecutionContext } from '@nestjs/common';
import { finalize, map, type Observable, tap } from 'rxjs';
import type { HandlerEnd } from './ending.js';
import { isStream, watched } from './subscription.js';

/** What a handler gives, and what tells once that it is done: with it all, with an error, or because nobody listens any more. */
export function watchedRun(
  handled: Observable<unknown>,
  context: ExecutionContext,
  ended: (end: HandlerEnd) => void,
): Observable<unknown> {
  const mayStream = context.getType<string>() === 'graphql';
  let streams = false;
  const handlerEnded = (end: HandlerEnd) => (streams ? undefined : ended(end));
  return handled.pipe(
    map((value) => {
      if (!mayStream || !isStream(value)) return value;
      streams = true;
      return watched(value, (failed, error) => ended({ failed, error }));
    }),
    tap({
      error: (error: unknown) => handlerEnded({ failed: true, error }),
      complete: () => handlerEnded({ failed: false }),
    }),
    finalize(() => handlerEnded({ failed: true, aborted: true })),
  );
}
