// The thresholds of incidents. Counts are those of the last minute: the current step of 15 seconds, and the four before.

/** The length of a step that is evaluated. */
export const STEP_MS = 15_000;
/** The steps of the last minute before the current one. */
export const MINUTE_STEPS = 4;
/** The number of steps that are compared with the last minute, and searched for the beginning of an incident: an hour. */
export const HOUR_STEPS = 240;
/** This many steps in a row without a problem end a run of bad steps. */
export const GOOD_STEPS = 4;

/** A limit has an incident if it rejected at least this many decisions … */
export const REFUSED_LEAST = 10;
/** … and at least this share of them, from 0 to 1 … */
export const REFUSED_SHARE = 0.05;
/** … or at least this many per second. */
export const REFUSED_PER_SECOND = 10;
/** The share from which it is critical. */
export const REFUSED_CRITICAL = 0.25;

/** Counters of a limit are near their quota if this many times one of them reached its share `nearLimit`. */
export const NEAR_LEAST = 10;

/** The store fails if it did not answer at least this many checks, and at least this share of them. */
export const FALLBACK_LEAST = 5;
export const FALLBACK_SHARE = 0.01;
/** The share from which it is critical. */
export const FALLBACK_CRITICAL = 0.25;

/** Checks are slow if their 99th percentile is at least this many times that of the hour before … */
export const LATENCY_TIMES = 3;
/** … and at least this many milliseconds. Only a sample of checks is timed; the last number is the minimum size of the sample. */
export const LATENCY_LEAST_MS = 5;
export const LATENCY_SAMPLES = 20;
/** The factor from which it is critical. */
export const LATENCY_CRITICAL = 10;

/** An adaptive limit is overloaded if it is full for this long, in milliseconds. */
export const FULL_MS = 5000;

/** Maximum number of incidents, of lost instances among them, and of keys per incident. */
export const MOST_INCIDENTS = 50;
export const MOST_LOST = 10;
export const MOST_KEYS = 5;
