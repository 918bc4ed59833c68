import type { Declaration } from '../rules/rule-compiler.js';
import type { OverrideRecord } from './override-record.js';

/**
 * What becomes of counted state under a changed rate:
 * - 'keep': same keys, and the algorithms translate what they find;
 * - 'proportional' and 'additive': same keys, and each counter's units are carried over when it is first asked again;
 * - 'reset': another generation, so other keys.
 */
export function carryOver(
  record: Pick<OverrideRecord, 'generation'> & Partial<OverrideRecord>,
): Pick<Declaration, 'generation' | 'carry'> {
  const { generation, inherit, previousQuota } = record;
  if ((inherit !== 'proportional' && inherit !== 'additive') || previousQuota === undefined) return { generation };
  return { generation, carry: { mode: inherit, quotaBefore: previousQuota } };
}
