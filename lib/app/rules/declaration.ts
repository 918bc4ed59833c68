import { algorithms } from '../../engine/algorithms/index.js';
import type { CarryOver } from '../../engine/limits/limit-settings.js';
import { secondVersion } from '../../storage/features/options.js';
import type { ExactLimit } from '../config/limit-definition.js';
import type { RateFunction } from '../config/limits-by-request.js';
import type { PolicyLimit } from '../config/policy.js';

/** The declaration of a limit: its place and properties. */
export interface Declaration {
  /** The place, for messages. */
  readonly location: string;
  /** The namespace of its counters; `undefined` if its name alone identifies them. */
  readonly namespace: string;
  /** The default name, for a limit that does not set one. */
  readonly name?: string;
  /** True if it applies to every route and can therefore be checked before the route is known. */
  readonly everywhere?: boolean;
  /** True if it is declared on a class or a route, so that each route may have its own counter. */
  readonly onRoutes?: boolean;
  /** True if code passes it to a call. Each call may pass a different one. */
  readonly inCall?: boolean;
  /** The function that returned its rate. The rate is not part of the name then. */
  readonly rate?: RateFunction;
  /** The number of times that its counters were restarted. */
  readonly generation?: number;
  /** Determines what becomes of units that are left when the rate changes. */
  readonly carry?: CarryOver;
  /** True if it is switched off. */
  readonly off?: boolean;
}

/**
 * Applies a policy to a limit defined in code. If the policy sets another algorithm, all options of the former one are dropped, including
 * its second version. If it sets a `blockFor` that isn't a list, `forgetAfter` is dropped.
 */
export function withPolicy(written: ExactLimit, { options }: PolicyLimit): ExactLimit {
  const isOther = options.algo !== undefined && options.algo !== written?.algo;
  const gone = isOther ? Object.keys(algorithms.get(written?.algo)?.options ?? {}) : [];
  if (isOther && secondVersion !== undefined) gone.push(secondVersion.option);
  if (options.blockFor !== undefined && !Array.isArray(options.blockFor)) gone.push('forgetAfter');
  const kept = Object.entries(written ?? {}).filter(([option]) => !gone.includes(option));
  return { ...Object.fromEntries(kept), ...options } as ExactLimit;
}
