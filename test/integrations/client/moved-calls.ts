import { setImmediate as turn } from 'node:timers/promises';
import { jest } from '@jest/globals';

/** How far time goes in one step, and how long a response takes. */
const STEP_MS = 5;
export const LATENCY_MS = 10;

/** Calls in time that stands still until all responses are there, so that no result depends on how busy the machine is. */
export class MovedCalls {
  /** The statuses of all responses that the server sent. */
  readonly statuses: number[] = [];
  private inFlight = 0;

  /**
   * Stops time.
   *
   * @param send makes a call
   * @param move moves the clock of the server by a number of milliseconds
   */
  constructor(
    private readonly send: typeof fetch,
    private readonly move: (ms: number) => void = () => undefined,
  ) {
    jest.useFakeTimers();
  }

  /** What the client sends with. */
  readonly fetch: typeof fetch = async (input, init) => {
    this.inFlight++;
    let response: Response;
    try {
      response = await this.send(input, init);
      await response.clone().text();
    } finally {
      this.inFlight--;
    }
    this.statuses.push(response.status);
    await new Promise((resolve) => {
      setTimeout(resolve, LATENCY_MS);
    });
    return response;
  };

  /** Lets time pass until something has ended, and returns how many milliseconds that took. */
  async during(action: Promise<unknown>): Promise<number> {
    const since = performance.now();
    let hasEnded = false;
    const ended = action.finally(() => (hasEnded = true));
    ended.catch(() => undefined);
    for (;;) {
      // What follows from a response takes some turns.
      for (let turns = 0; turns < 5; turns++) {
        await turn();
        while (this.inFlight > 0) await turn();
      }
      if (hasEnded) break;
      this.move(STEP_MS);
      jest.advanceTimersByTime(STEP_MS);
    }
    await ended;
    return performance.now() - since;
  }
}

/** Calls from a number of callers at once, each of which makes the next call when it has the response to the last one. */
export async function callers(count: number, calls: number, call: () => Promise<unknown>): Promise<void> {
  let left = calls;
  await Promise.all(
    Array.from({ length: count }, async () => {
      while (left-- > 0) await call();
    }),
  );
}
