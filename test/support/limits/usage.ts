import type { TimeRange } from '../../../lib/index.js';

/** What a store has recorded of a limit with `usage`: the units of one key by day, and those of all keys in pages. */
export { pagesOf, unitsOf } from '../../../lib/storage/features/usage/stores.js';

/** All days that are kept. */
export const ALL: TimeRange = { from: -Infinity, to: Infinity };
