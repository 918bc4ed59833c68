import { asksForAnchor, readAnchor } from '../engine/algorithms/anchor.js';
import type { AlgorithmOptions } from '../engine/algorithms/index.js';
import { nameOfKey } from '../nest/explain/described-limit.js';
import { shownUnitsOf } from '../storage/features/index.js';
import type { Rule } from '../app/rules/rule.js';
import type { LimitInfo, PlanInfo } from './api.js';

/** Options that only plans have. */
interface PlanOptions {
  readonly anchor?: unknown;
  readonly rollover?: number | undefined;
  readonly credits?: boolean | undefined;
}

type Structure = Pick<LimitInfo, 'unit' | 'within' | 'own' | 'kept' | 'share' | 'plan'>;

/** What a limit is part of, and who has parts of it. */
export function structureOf({ configured, limit, settings: { trait } }: Rule): Structure {
  const { above = 0, kept = 0, floor = 0 } = shownUnitsOf(limit);
  const { unit } = limit;
  const { parent } = configured;
  const plan = planOf(limit.options);
  return {
    ...(unit !== undefined && { unit }),
    ...(parent !== undefined && { within: parent }),
    ...(above > 0 && { own: limit.quota - above }),
    ...(kept > 0 && { kept }),
    ...(trait?.option === 'share' && { share: shareOf(trait.by, floor) }),
    ...(plan && { plan }),
  };
}

function shareOf(by: unknown, floor: number): NonNullable<LimitInfo['share']> {
  return { by: nameOfKey(typeof by === 'function' ? by : (by as { given: unknown }).given), floor };
}

function planOf(options: AlgorithmOptions): PlanInfo | undefined {
  if (options.algo !== 'calendar-window' && options.algo !== 'budget') return undefined;
  const { period, timezone = 'UTC' } = options;
  const { anchor, rollover, credits }: PlanOptions = options;
  const at = asksForAnchor(options) ? 'each' : anchor === undefined ? undefined : readAnchor(anchor, timezone);
  return {
    period,
    timezone,
    ...(at !== undefined && { anchor: at }),
    ...(rollover !== undefined && { rollover }),
    ...(credits === true && { credits }),
  };
}
