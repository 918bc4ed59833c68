/** How a contender asks several limits: all of them one after the other, as the guards of the peers do, or each in its turn. */
export function inTurn(checks) {
  if (checks.length === 1) return checks[0];
  return async (key) => {
    for (const check of checks) if (!(await check(key))) return false;
    return true;
  };
}

/** Each check is of the next limit, as requests are of different routes. */
export function mixed(checks) {
  let next = 0;
  return (key) => checks[next++ % checks.length](key);
}

/** One check of a throttler's storage for each limit. */
export function throttlerChecks(storage, limits) {
  return limits.map(({ rate, intervalMs }, index) => async (key) => {
    const { isBlocked } = await storage.increment(`t:${key}`, intervalMs, rate, intervalMs, `limit-${index}`);
    return !isBlocked;
  });
}
