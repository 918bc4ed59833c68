/** A GraphQL subscription gives a stream that its client can end. */
type Stream = AsyncIterable<unknown>;

/** Whether a handler answered with a stream that is read later, and not with the work done. */
export function isStream(value: unknown): value is Stream {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** The same stream, which reports its end: by itself, with an error, or because its reader has left. */
export function watched(
  stream: Stream,
  ended: (failed: boolean, error?: unknown) => void,
): AsyncIterableIterator<unknown> {
  const iterator = stream[Symbol.asyncIterator]();
  const watch = async (step: Promise<IteratorResult<unknown>>) => {
    try {
      const result = await step;
      if (result.done === true) ended(false);
      return result;
    } catch (error) {
      ended(true, error);
      throw error;
    }
  };
  return {
    next: () => watch(iterator.next()),
    async return(value) {
      // It may be waiting for an event that never comes.
      ended(false);
      return (await iterator.return?.(value)) ?? { done: true, value };
    },
    async throw(error) {
      ended(true, error);
      if (iterator.throw === undefined) throw error;
      return iterator.throw(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
