import { NEVER, Observable } from 'rxjs';
import type { CallRun, EndPart } from './call-run.js';

/** The private part of an RxJS subscription: everything that is cancelled with it, including subscriptions to its sources. */
interface Kept {
  readonly closed?: boolean;
  readonly isStopped?: boolean;
  readonly _finalizers?: readonly object[] | null;
}

/**
 * Makes an Observable a part of a call that ends with the Observable. If the subscriber leaves first, everything that can be cancelled is
 * cancelled. A promise inside continues, and an asynchronous generator continues until its next value: these linger.
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

/** Returns true if an Observable never emits because it is based on `NEVER`, as one that only keeps an event stream open. */
function waitsForNothing(observable: Observable<unknown>): boolean {
  let source: Observable<unknown> | undefined = observable;
  while (source !== undefined && source !== NEVER) source = source.source;
  return source === NEVER;
}

/** The open subscriptions inside a subscription that unsubscribing does not cancel, such as that of a promise. */
function uncancellable(subscription: Kept): Kept[] {
  const { _finalizers: finalizers } = subscription;
  // `undefined` if this version of RxJS stores them elsewhere.
  if (finalizers === undefined) return [];
  if (finalizers === null || finalizers.length === 0) return [subscription];
  return finalizers.filter(isOpenSubscriber).flatMap(uncancellable);
}

function isOpenSubscriber({ isStopped, closed }: Kept): boolean {
  return isStopped === false && closed === false;
}

/** Calls back when the sources of an ended subscription notice the end, which they do at their next value. */
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
