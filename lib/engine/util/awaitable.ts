/** A value, or a promise of it. An available value is used without awaiting it. */
export type Awaitable<T> = T | Promise<T>;

/** Continues with a value: synchronously if it isn't a promise. */
export function andThen<T, R>(value: Awaitable<T>, map: (value: T) => Awaitable<R>): Awaitable<R> {
  // The `then` of a thenable may return anything, even something that isn't a promise.
  return isPromise(value) ? Promise.resolve(value).then(map) : map(value);
}

/** Maps all items: synchronously if no result is a promise. All rejections are handled. */
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

/** Returns true if a value has to be awaited. */
export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return typeof value === 'object' || typeof value === 'function'
    ? typeof (value as Partial<Promise<T>> | null)?.then === 'function'
    : false;
}
