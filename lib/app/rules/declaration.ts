import type { RateFunction } from '../config/limits-by-request.js';
import type { CarryOver } from '../../engine/limits/compiled-limit.js';

/** Where and how a limit is declared. */
export interface Declaration {
  /** The place, for messages. */
  readonly location: string;
  /** The namespace of its counters; `undefined` if its name alone identifies them. */
  readonly namespace: string;
  /** The name of a limit that does not set its own. */
  readonly name?: string;
  /** Whether it applies to every route, so that it can be checked before the route is known. */
  readonly everywhere?: boolean;
  /** Whether it is declared on a class or a route, so that each route can have its own counter. */
  readonly onRoutes?: boolean;
  /** Whether a call of code gives it, perhaps another one with each call. */
  readonly inCall?: boolean;
  /** The function that found its rate: it is no part of its name. */
  readonly rate?: RateFunction;
  /** How often its counters were started anew. */
  readonly generation?: number;
  /** What happens to units left under another rate. */
  readonly carry?: CarryOver;
  /** Whether it is switched off. */
  readonly off?: boolean;
}
