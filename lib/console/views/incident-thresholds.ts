// What counts as an incident. Counts are those of the last minute: of the current step of 15 seconds, and the four before.

/** The length of a step that is judged. */
export const STEP_MS = 15_000;
/** The steps of the last minute before the current one. */
export const MINUTE_STEPS = 4;
/** The steps that are compared with it, and in which the beginning of an incident is looked for: an hour. */
export const HOUR_STEPS = 240;
/** This many steps without anything bad end a run of bad ones. */
export const GOOD_STEPS = 4;

/** A limit hurts if it refused at least this many decisions … */
export const REFUSED_LEAST = 10;
/** … and at least this share of them, from 0 to 1 … */
export const REFUSED_SHARE = 0.05;
/** … or at least this many a second. */
export const REFUSED_PER_SECOND = 10;
/** From this share on it is critical. */
export const REFUSED_CRITICAL = 0.25;

/** Counters of a limit are near their quota if this often one of them came to its share `nearLimit`. */
export const NEAR_LEAST = 10;

/** The store fails if it did not answer at least this many checks, and at least this share of them. */
export const FALLBACK_LEAST = 5;
export const FALLBACK_SHARE = 0.01;
/** From this share on it is critical. */
export const FALLBACK_CRITICAL = 0.25;

/** Checks are slow if their 99th percentile is at least this many times as long as in the hour before … */
export const LATENCY_TIMES = 3;
/** … and takes at least this many milliseconds; a part of the checks is timed, and this many times are the least to judge by. */
export const LATENCY_LEAST_MS = 5;
export const LATENCY_SAMPLES = 20;
/** From this many times on it is critical. */
export const LATENCY_CRITICAL = 10;

/** An adaptive limit is overloaded if it is full for this long, in milliseconds. */
export const FULL_MS = 5000;

/** The most incidents, the most of lost instances among them, and the most keys of each. */
export const MOST_INCIDENTS = 50;
export const MOST_LOST = 10;
export const MOST_KEYS = 5;
