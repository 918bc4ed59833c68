interface Subscription {
  readonly listeners: Set<() => void>;
  readonly notify: () => void;
}

/** One listener per signal, because Node warns about many listeners, and a signal may end many waits. */
const subscriptions = new WeakMap<AbortSignal, Subscription>();

/** Calls back once the signal aborts. Returns a function that unsubscribes. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  let subscription = subscriptions.get(signal);
  if (subscription === undefined) {
    const listeners = new Set<() => void>();
    subscription = { listeners, notify: () => listeners.forEach((each) => each()) };
    subscriptions.set(signal, subscription);
    signal.addEventListener('abort', subscription.notify, { once: true });
  }
  const { listeners, notify } = subscription;
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    signal.removeEventListener('abort', notify);
    subscriptions.delete(signal);
  };
}
