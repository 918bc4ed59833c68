import type { Declaration } from '../rules/declaration.js';
import type { OverrideRecord } from './override-record.js';

/**
 * Determines how counters carry over to a changed rate:
 * - 'keep': the keys stay, and the algorithms convert their state;
 * - 'proportional' and 'additive': the keys stay, and each counter converts its units at its next check;
 * - 'reset': a new generation, which has new keys.
 */
export function carryOver(
  generation: number,
  record: Pick<OverrideRecord, 'inherit' | 'previousQuota'> | undefined,
): Pick<Declaration, 'generation' | 'carry'> {
  const { inherit, previousQuota } = record ?? {};
  if ((inherit !== 'proportional' && inherit !== 'additive') || previousQuota === undefined) return { generation };
  return { generation, carry: { mode: inherit, quotaBefore: previousQuota } };
}
