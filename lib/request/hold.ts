import { type ClosableResponse, isGone, onClose } from '../transports/connection.js';

/** The longest that a timer can wait. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Waits. Resolves to whether the client is still there; if it goes away, at once. */
export function hold(delayMs: number, connection: ClosableResponse | undefined): Promise<boolean> {
  if (isGone(connection)) return Promise.resolve(false);
  return new Promise((resolve) => {
    const done = (stillThere: boolean) => {
      clearTimeout(timer);
      forget?.();
      resolve(stillThere);
    };
    const timer = setTimeout(() => done(true), Math.min(delayMs, MAX_TIMEOUT_MS));
    const forget = connection === undefined ? undefined : onClose(connection, () => done(false));
    // The client's socket keeps the process alive as long as anyone waits for the answer.
    timer.unref();
  });
}
