/** The stream of a GraphQL subscription, which its client can end. */
type Stream = AsyncIterable<unknown>;

/** Returns true if a handler returned a stream that is read later, so that its work is not done. */
export function isStream(value: unknown): value is Stream {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/**
 * Wraps a stream to report its end: on its own, with an error, or because its reader has left. It also reports each step, since a generator
 * completes the current one after its reader has left.
 */
export function watched(
  stream: Stream,
  ended: (failed: boolean, error?: unknown) => void,
  began: (step: Promise<unknown>) => void = () => {},
): AsyncIterableIterator<unknown> {
  const iterator = stream[Symbol.asyncIterator]();
  const begin = <T extends Promise<unknown> | undefined>(step: T): T => {
    if (step !== undefined) began(step);
    return step;
  };
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
    next: () => watch(begin(iterator.next())),
    async return(value) {
      const left = begin(iterator.return?.(value));
      // It may be waiting for an event that never happens.
      ended(false);
      return (await left) ?? { done: true, value };
    },
    async throw(error) {
      const thrown = begin(iterator.throw?.(error));
      ended(true, error);
      if (thrown === undefined) throw error;
      return thrown;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
