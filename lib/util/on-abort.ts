interface Abortion {
  readonly listeners: Set<() => void>;
  readonly tell: () => void;
}

/** Who waits for a signal. Node warns of many listeners, and one signal may end many waits. */
const awaited = new WeakMap<AbortSignal, Abortion>();

/** Calls back once the signal aborts. Returns what ends that. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  let abortion = awaited.get(signal);
  if (abortion === undefined) {
    const listeners = new Set<() => void>();
    abortion = { listeners, tell: () => listeners.forEach((each) => each()) };
    awaited.set(signal, abortion);
    signal.addEventListener('abort', abortion.tell, { once: true });
  }
  const { listeners, tell } = abortion;
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    signal.removeEventListener('abort', tell);
    awaited.delete(signal);
  };
}
