import { useEffect, useReducer } from 'preact/hooks';

/** A value that views show and that can change. */
export class Store<T> {
  #value: T;
  readonly #listeners = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set value(value: T) {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** The value of a store. The component is rendered again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, draw] = useReducer<number, void>((count) => count + 1, 0);
  useEffect(() => {
    const seen = store.value;
    const end = store.listen(() => draw());
    // It may have changed since the component was rendered.
    if (!Object.is(seen, store.value)) draw();
    return end;
  }, [store]);
  return store.value;
}
