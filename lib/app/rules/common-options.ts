import { type AlgorithmOptions, algorithms } from '../../engine/algorithms/index.js';
import { type AllCommonOptions, checkLimit, COMMON_OPTIONS, isCommon, isDefault } from '../config/limit-options.js';
import type { LimitDefaults, LimitDefinition } from '../config/limit-definition.js';
import { bare } from '../../engine/util/objects.js';
import { givenOptions } from '../../engine/options/values.js';

/** Reads the options of a limit, and the app's defaults for those it does not set. Throws `RateLimitConfigError`. */
export function commonOptions(
  definition: LimitDefinition,
  defaults: LimitDefaults,
  location: string,
): AllCommonOptions {
  const common = withDefaults(definition, defaults);
  checkLimit({ ...definition, ...common }, location);
  return common;
}

/** The other options, which the algorithm reads. */
export function algorithmOptions(definition: LimitDefinition): AlgorithmOptions {
  const own = Object.entries(definition)
    // An algorithm may have an option of its own by the name of a common one.
    .filter(([option]) => !isCommon(option) || ownOption(definition.algo, option))
    // Equal dates make equal limits.
    .map(([option, value]: [string, unknown]) => [option, value instanceof Date ? value.getTime() : value]);
  return bare(Object.fromEntries(own) as unknown as AlgorithmOptions);
}

function withDefaults(definition: LimitDefinition, defaults: LimitDefaults): AllCommonOptions {
  const own = givenOptions<AllCommonOptions>(definition, COMMON_OPTIONS);
  const algorithm = algorithms.get(definition.algo);
  const hasOneBlock = own.blockFor !== undefined && !Array.isArray(own.blockFor);
  const left = Object.entries(defaults).filter(
    ([option]) =>
      own[option as keyof LimitDefaults] === undefined &&
      isDefault(option, algorithm) &&
      // Without a list of `blockFor` there is nothing to forget.
      !(option === 'forgetAfter' && hasOneBlock),
  );
  return Object.assign(own, Object.fromEntries(left));
}

function ownOption(algo: unknown, option: string): boolean {
  const options = algorithms.get(algo)?.options;
  return options !== undefined && Object.hasOwn(options, option);
}
