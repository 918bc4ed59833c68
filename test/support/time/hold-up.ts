/** Gives the event loop no turn for this long, as busy code does, but leaves the processor to others. */
export function holdUp(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
