import { algorithms } from '../../engine/algorithms/index.js';
import type { ExactLimit } from '../config/limit-definition.js';
import type { PolicyLimit } from '../config/policy.js';
import { secondVersion } from '../../storage/features/options.js';

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
