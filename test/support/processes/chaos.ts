import { polled } from '../time/until.js';

/** How long each scenario of `test/chaos` goes on: in seconds, from `CHAOS_SECONDS`; without it each is as short as can be. */
const seconds = Number(process.env['CHAOS_SECONDS'] ?? 0);

/** Whether the long form runs, which has the machine for itself. */
export const isLong = seconds > 0;

/** How long a scenario goes on, in milliseconds. */
export function scenarioMs(shortMs: number): number {
  return isLong ? seconds * 1000 : shortMs;
}

/** Asks again and again until something is so. */
export async function until(what: string, test: () => unknown, timeoutMs = 240_000): Promise<void> {
  if (!(await polled(test, timeoutMs, 50))) throw new Error(`${what}: not within ${timeoutMs} ms`);
}
