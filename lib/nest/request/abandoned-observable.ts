import { NEVER, Observable } from 'rxjs';
import type { CallRun, EndPart } from './call-run.js';

/** The private part of an RxJS subscription: what is cancelled with it, including subscriptions to its sources. */
interface Kept {
  readonly closed?: boolean;
  readonly isStopped?: boolean;
  readonly _finalizers?: readonly object[] | null;
}

/**
 * The same Observable as a part of a call, which ends with it. If its listener leaves first, what can be cancelled is. But a
 * promise in it goes on, and so does an asynchronous generator until its next value: they linger.
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

/** Whether an Observable ends in `NEVER`, such as one that keeps a stream of events open. */
function waitsForNothing(observable: Observable<unknown>): boolean {
  let source: Observable<unknown> | undefined = observable;
  while (source !== undefined && source !== NEVER) source = source.source;
  return source === NEVER;
}

/** The open subscriptions in a subscription that cancel nothing, such as that of a promise. */
function uncancellable(subscription: Kept): Kept[] {
  const { _finalizers: finalizers } = subscription;
  // Undefined if this version of RxJS keeps them elsewhere.
  if (finalizers === undefined) return [];
  if (finalizers === null || finalizers.length === 0) return [subscription];
  return finalizers.filter(isOpenSubscriber).flatMap(uncancellable);
}

function isOpenSubscriber({ isStopped, closed }: Kept): boolean {
  return isStopped === false && closed === false;
}

/**
 * Calls back once the sources of an ended subscription notice that it has ended, which they do when they have something to emit.
 */
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
