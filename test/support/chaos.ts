/** How long each scenario of `test/chaos` goes on: in seconds, from `CHAOS_SECONDS`; without it each is as short as can be. */
const seconds = Number(process.env['CHAOS_SECONDS'] ?? 0);

/** Whether the long form runs, which has the machine for itself. */
export const isLong = seconds > 0;

/** How long a scenario goes on, in milliseconds. */
export function scenarioMs(shortMs: number): number {
  return isLong ? seconds * 1000 : shortMs;
}

const POLL_MS = 10;

/** Asks again and again until something is so. Its polls are counted: on a busy machine each takes longer. */
export async function until(what: string, test: () => unknown, timeoutMs = 20_000): Promise<void> {
  for (let left = timeoutMs / POLL_MS; !(await test()); left--) {
    if (left <= 0) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
