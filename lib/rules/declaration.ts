import type { CarryOver } from '../limits/compiled-limit.js';

/** Where a limit is written. */
export interface Declaration {
  /** For messages. */
  readonly location: string;
  /** What shares its counters; nothing if the limit's name alone does. */
  readonly namespace: string;
  /** The name of a limit that has none of its own. */
  readonly name?: string;
  /** Whether it applies to every route, so that it can be checked before the route is known. */
  readonly everywhere?: boolean;
  /** Whether it stands on a class or a route, so that each route can have a counter of its own. */
  readonly onRoutes?: boolean;
  /** How often its counters were made to start anew. */
  readonly generation?: number;
  /** What becomes of what was left under another rate. */
  readonly carry?: CarryOver;
  /** Whether it is not asked at all. */
  readonly off?: boolean;
}
