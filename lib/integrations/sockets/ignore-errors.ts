/** A stream that reports errors. */
interface Stream {
  on(event: 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
}

function ignored(): void {}

/** A client that resets its connection must not end the process. Returns a function that lets others handle errors again. */
export function ignoreErrors(stream: Stream): () => void {
  stream.on('error', ignored);
  return () => void stream.off('error', ignored);
}
