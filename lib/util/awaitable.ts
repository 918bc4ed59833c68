/** A value, or a promise of it: what can be had at once is not waited for. */
export type Awaitable<T> = T | Promise<T>;

/** Goes on with a value as soon as it is there. */
export function andThen<T, R>(value: Awaitable<T>, goOn: (value: T) => Awaitable<R>): Awaitable<R> {
  // Not everything with a `then` hands on what becomes of it, as promises do.
  return isPromise(value) ? Promise.resolve(value).then(goOn) : goOn(value);
}

/** Maps all items, at once if all can be had at once. No rejection is left without someone who hears of it. */
export function mapAll<T, R>(items: readonly T[], map: (item: T) => Awaitable<R>): Awaitable<R[]> {
  let waits = false;
  const results = items.map((item) => {
    try {
      const result = map(item);
      waits ||= isPromise(result);
      return result;
    } catch (error) {
      waits = true;
      return Promise.reject(error);
    }
  });
  return waits ? Promise.all(results) : (results as R[]);
}

/** Whether a value has to be waited for. */
export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | null | undefined)?.then === 'function';
}
