/** A value, or a promise of it. A value that is already there is not awaited. */
export type Awaitable<T> = T | Promise<T>;

/** Continues with a value: at once if it is already there. */
export function andThen<T, R>(value: Awaitable<T>, map: (value: T) => Awaitable<R>): Awaitable<R> {
  // Thenables need not return a promise from `then`.
  return isPromise(value) ? Promise.resolve(value).then(map) : map(value);
}

/** Maps all items: synchronously if all results are already there. No rejection goes unhandled. */
export function mapAll<T, R>(items: readonly T[], map: (item: T) => Awaitable<R>): Awaitable<R[]> {
  let isAsync = false;
  const results = items.map((item) => {
    try {
      const result = map(item);
      isAsync ||= isPromise(result);
      return result;
    } catch (error) {
      isAsync = true;
      return Promise.reject(error);
    }
  });
  return isAsync ? Promise.all(results) : (results as R[]);
}

/** Whether a value has to be awaited. */
export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return typeof value === 'object' || typeof value === 'function'
    ? typeof (value as Partial<Promise<T>> | null)?.then === 'function'
    : false;
}
