import type { Declaration } from '../rules/declaration.js';
import type { OverrideRecord } from './override-record.js';

/**
 * Says how counters take over a changed rate:
 * - 'keep': same keys, whose state the algorithms convert;
 * - 'proportional' and 'additive': same keys, and each counter carries its units over at its next check;
 * - 'reset': a new generation, and so new keys.
 */
export function carryOver(
  generation: number,
  record: Pick<OverrideRecord, 'inherit' | 'previousQuota'> | undefined,
): Pick<Declaration, 'generation' | 'carry'> {
  const { inherit, previousQuota } = record ?? {};
  if ((inherit !== 'proportional' && inherit !== 'additive') || previousQuota === undefined) return { generation };
  return { generation, carry: { mode: inherit, quotaBefore: previousQuota } };
}
