import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import { algorithms } from '../../engine/algorithms/index.js';
import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { planMessages } from '../../engine/errors/messages/rates.js';
import { refuseForeignOptions } from '../../engine/limits/limit-terms.js';
import { ownRows } from '../../engine/options/option-row.js';
import { isObject } from '../../engine/options/values.js';
import { secondVersion } from '../../storage/features/options.js';
import type { ExactLimit } from '../config/limit-definition.js';
import { optionsOf } from '../config/limit-options.js';
import type { Declaration } from '../rules/declaration.js';
import type { OverrideRecord } from './override-record.js';
import type { RatePatch } from './override.js';
import { wrongOption } from '../../engine/options/check-options.js';

/** Applies a patch to a definition. The compiler checks the values of the options. */
export function withPatch(definition: ExactLimit, patch: RatePatch): ExactLimit {
  const beside = secondVersion?.patched(definition as never, patch as never);
  return { ...definition, ...patch, ...beside } as ExactLimit;
}

/** Reads the options that a patch sets. Throws for options that the algorithm doesn't have, and for a patch that sets nothing. */
export function readPatch({ algo }: ExactLimit, patch: unknown, location: string): RatePatch {
  const algorithm = algorithms.get(algo);
  const known = algorithm === undefined ? [] : changeableOf(algorithm);
  if (!isObject(patch)) throw new RateLimitConfigError(messages.wrongPatch(location, patch, known));
  const set = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
  // A function can't be sent to other instances.
  if (typeof set['anchor'] === 'function') {
    throw wrongOption(location, 'anchor', set['anchor'], planMessages.fixedAnchorExpected());
  }
  if (algorithm !== undefined) refuseForeignOptions(set as never, algorithm, location);
  const other = Object.keys(set).find((option) => !known.includes(option));
  if (other !== undefined) {
    const isOption = other === 'algo' || algorithm === undefined || Object.hasOwn(optionsOf(algorithm), other);
    const refusal = isOption ? messages.unchangeable : messages.unknownOption;
    throw configError(
      isOption ? 'SLUICE_UNCHANGEABLE_OPTION' : 'SLUICE_UNKNOWN_OPTION',
      refusal(location, other, known),
    );
  }
  if (Object.keys(set).length === 0) throw new RateLimitConfigError(messages.wrongPatch(location, patch, known));
  return set;
}

/** The options that can be changed with the rate of a limit. */
function changeableOf(algorithm: Algorithm): string[] {
  const rows = ownRows(optionsOf(algorithm));
  return Object.keys(rows).filter(
    (option) => Object.hasOwn(algorithm.options, option) || rows[option]!.live === 'rate',
  );
}

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
