/** Something long that is done in steps: it yields after each. */
export type Steps<T> = Generator<void, T>;

/** Steps to do before the rest of the process gets its turn: a limit takes a tenth of a millisecond. */
export const STEPS_A_TURN = 20;

/** Does all steps at once. */
export function allAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Does a few steps in each turn of the event loop. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let done = 1; ; done++) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (done % STEPS_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
