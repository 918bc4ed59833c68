/**
 * How long apps and stores of tests wait for a Redis that answers: longer than any machine takes, and shorter than Jest lets a test run.
 * With the default, an app on a busy machine decides in process instead. Only tests of the timeout itself, or of a Redis that doesn't
 * answer, set another.
 */
export const PATIENCE = '5m';
export const PATIENCE_MS = 300_000;

/** Options of an app with that timeout, unless they set one. Regions allow none as long. */
export function patient(options) {
  const isOnRedis = options.redis !== undefined && options.regions === undefined;
  return isOnRedis && options.timeout === undefined ? { ...options, timeout: PATIENCE } : options;
}
