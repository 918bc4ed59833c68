import { algorithms } from '../algorithms/index.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import type { PolicyLimit } from '../config/policy.js';

/** What a policy makes of a limit of code: with another algorithm, the options of the former one go. */
export function withPolicy(written: LimitDefinition, { options }: PolicyLimit): LimitDefinition {
  const isOther = options.algo !== undefined && options.algo !== written?.algo;
  const own = isOther ? (algorithms.get(written?.algo)?.options ?? []) : [];
  const kept = Object.entries(written ?? {}).filter(([option]) => !own.includes(option));
  return { ...Object.fromEntries(kept), ...options } as LimitDefinition;
}
