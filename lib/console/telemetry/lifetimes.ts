// How long instances are known.

/** An instance that has not reported for this long no longer runs: it reports once a second. */
export const LOST_AFTER_MS = 3500;
/** How long an instance that ended without saying so is shown as lost. */
export const LOST_SHOWN_MS = 600_000;
/** What an ended instance counted is added to the sum of all ended ones this long after its last report. */
export const FOLD_AFTER_MS = 30_000;
/** An instance that had no contact for this long finds out whether others took it for an ended one. */
export const ABSENT_MS = 15_000;
/** The most instances to keep track of, including those that ended. */
export const MOST_INSTANCES = 1000;
/** How long instances of the release before are known after their last report. */
export const DAY_MS = 86_400_000;
/** How long the index of instances is kept: longer than any count. */
export const INDEX_SECONDS = (31 * DAY_MS) / 1000;
/** The name under which the sum of all ended instances is stored. */
export const ENDED = 'ended';
/** How often what the instance is is stored for when it is lost, and how long, in seconds. */
export const ABOUT_EVERY = 60;
export const ABOUT_SECONDS = LOST_SHOWN_MS / 1000 + 2 * ABOUT_EVERY;
/** How often instances say that their limits still hold, in seconds. */
export const LIMITS_EVERY = 300;
/** How often ended instances are added to their sum, in seconds. */
export const FOLD_EVERY = 10;
