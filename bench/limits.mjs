/**
 * Limits whose counters are all alive while they are timed: of a limit that fills up between two checks of a key, every check
 * would meet a fresh counter. None of them refuses as many checks as are made.
 */
const DAY_MS = 86_400_000;

/** For thousands of keys: a unit comes back in 14 minutes. */
export const steady = { rate: 1000, intervalMs: 10 * DAY_MS };
export const three = [steady, { rate: 2000, intervalMs: 20 * DAY_MS }, { rate: 2500, intervalMs: 30 * DAY_MS }];
/** For one key that is asked all the time: 50,000 units come back in a second. */
export const hot = { rate: 20_000_000, intervalMs: 400_000 };
/** For counters in process, that see more checks. */
export const ample = { rate: 1_000_000, intervalMs: DAY_MS };

/** Limits of one check, as many as are wanted. */
export const several = (count) =>
  Array.from({ length: count }, (_, index) => ({ ...steady, intervalMs: DAY_MS * (10 + index) }));
