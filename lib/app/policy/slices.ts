/** A long task in steps: it yields after each of them. */
export type Steps<T> = Generator<void, T>;

/** The number of steps to run before the rest of the process gets its turn. Reading a limit takes a tenth of a millisecond. */
export const STEPS_A_TURN = 20;

/** Runs all steps synchronously. */
export function allAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Runs a few steps per turn of the event loop. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let done = 1; ; done++) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (done % STEPS_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
