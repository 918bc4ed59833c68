import type { Declaration } from '../plan/rule-compiler.js';
import type { RateRecord } from './rate-record.js';

/**
 * What becomes of counted state under a changed rate. This is the one place that reads `record.state`'s consequences:
 * - 'keep': same keys, and the algorithms translate what they find;
 * - 'reset': another generation, so other keys;
 * - 'proportional' and 'additive': as 'keep' for now. What they need is here: `state`, `quota` and `previousQuota`.
 */
export function carryOver({ generation }: Pick<RateRecord, 'generation'>): Pick<Declaration, 'generation'> {
  return { generation };
}
