import { NEVER, Observable } from 'rxjs';
import type { CallRun, EndPart } from './call-run.js';

/** What RxJS keeps of a subscription, in private: what is to be cancelled with it, subscriptions of its sources among it. */
interface Kept {
  readonly closed?: boolean;
  readonly isStopped?: boolean;
  readonly _finalizers?: readonly object[] | null;
}

/**
 * The same Observable, as a part of a call: it ends with it. If its listener leaves first, what can be cancelled is; but a promise in it
 * goes on, and so does an asynchronous generator until its next value. They linger.
 */
export function partOfCall(observable: Observable<unknown>, run: CallRun): Observable<unknown> {
  return new Observable((subscriber) => {
    const end = run.begin();
    const source = observable.subscribe({
      next: (value) => {
        run.lingerWith(value);
        subscriber.next(value);
      },
      error: (error: unknown) => {
        end();
        subscriber.error(error);
      },
      complete: () => {
        end();
        subscriber.complete();
      },
    });
    return () => {
      const pending = source.closed || waitsForNothing(observable) ? [] : uncancellable(source as object);
      source.unsubscribe();
      for (const each of pending) onceNoticed(each, run.linger());
      end();
    };
  });
}

/** Whether an Observable ends in `NEVER`, as one does that keeps a stream of events open. */
function waitsForNothing(observable: Observable<unknown>): boolean {
  let source: Observable<unknown> | undefined = observable;
  while (source !== undefined && source !== NEVER) source = source.source;
  return source === NEVER;
}

/** The open subscriptions in a subscription that cancel nothing: that of a promise is such a one. */
function uncancellable(subscription: Kept): Kept[] {
  const { _finalizers: finalizers } = subscription;
  // Undefined in an RxJS that keeps them otherwise.
  if (finalizers === undefined) return [];
  if (finalizers === null || finalizers.length === 0) return [subscription];
  return finalizers.filter(isOpenSubscriber).flatMap(uncancellable);
}

function isOpenSubscriber({ isStopped, closed }: Kept): boolean {
  return isStopped === false && closed === false;
}

/** Calls back once what an ended subscription had subscribed to notices that it has ended, as it has something to hand on. */
function onceNoticed(subscription: Kept, noticed: EndPart): void {
  Object.defineProperty(subscription, 'closed', {
    configurable: true,
    get: () => {
      noticed();
      return true;
    },
  });
  Object.assign(subscription, { next: noticed, error: noticed, complete: noticed });
}
