import { type AlgorithmOptions, algorithms } from '../../engine/algorithms/index.js';
import { type AllCommonOptions, checkLimit, COMMON_OPTIONS, isCommon, isDefault } from '../config/limit-options.js';
import type { LimitDefaults, LimitDefinition } from '../config/limit-definition.js';
import { bare } from '../../engine/util/objects.js';
import { type OptionRows, ownRows } from '../../engine/options/option-row.js';
import { givenOptions } from '../../engine/options/values.js';

/** Reads the options of a limit; the app's defaults fill in those it does not set. Throws `RateLimitConfigError`. */
export function commonOptions(
  definition: LimitDefinition,
  defaults: LimitDefaults,
  location: string,
): AllCommonOptions {
  const common = withDefaults(definition, defaults);
  checkLimit({ ...definition, ...common }, location);
  return common;
}

/** The remaining options, which the algorithm reads. */
export function algorithmOptions(definition: LimitDefinition): AlgorithmOptions {
  const own: Record<string, unknown> = bare({});
  const ofAlgorithm = algorithms.get(definition.algo)?.options ?? {};
  for (const [option, value] of Object.entries(definition) as [string, unknown][]) {
    // An algorithm may have an option with the name of a common one.
    if (isCommon(option) && !Object.hasOwn(ofAlgorithm, option)) continue;
    // Compared by their time, so that limits with equal dates are equal. A date in place of a number stays one, and is rejected.
    own[option] = value instanceof Date && takesDate(ofAlgorithm, option) ? value.getTime() : value;
  }
  return own as unknown as AlgorithmOptions;
}

function takesDate(rows: OptionRows, option: string): boolean {
  return ownRows(rows)[option]?.kind.isValid(new Date(0)) === true;
}

function withDefaults(definition: LimitDefinition, defaults: LimitDefaults): AllCommonOptions {
  const own = givenOptions<AllCommonOptions>(definition, COMMON_OPTIONS);
  const inherited = Object.entries(defaults);
  if (inherited.length === 0) return own;
  const algorithm = algorithms.get(definition.algo);
  const hasOneBlock = own.blockFor !== undefined && !Array.isArray(own.blockFor);
  const left = inherited.filter(
    ([option]) =>
      own[option as keyof LimitDefaults] === undefined &&
      isDefault(option, algorithm) &&
      // `forgetAfter` only has an effect if `blockFor` is a list.
      !(option === 'forgetAfter' && hasOneBlock),
  );
  return Object.assign(own, Object.fromEntries(left));
}
