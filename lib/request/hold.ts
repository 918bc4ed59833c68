import type { ClosableResponse } from '../http/transport.js';

/** The longest that a timer can wait. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Whether a response has been closed, so that it will not say so any more. Over HTTP/2 only its stream knows. */
export function isGone(connection: (ClosableResponse & { stream?: { destroyed?: boolean } }) | undefined): boolean {
  return connection?.destroyed === true || connection?.stream?.destroyed === true;
}

/** Waits. Resolves to whether the client is still there; if it goes away, at once. */
export function hold(delayMs: number, connection: ClosableResponse | undefined): Promise<boolean> {
  if (isGone(connection)) return Promise.resolve(false);
  return new Promise((resolve) => {
    const left = () => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(
      () => {
        connection?.off('close', left);
        resolve(true);
      },
      Math.min(delayMs, MAX_TIMEOUT_MS),
    );
    // The client's socket keeps the process alive as long as anyone waits for the answer.
    timer.unref();
    connection?.once('close', left);
  });
}
