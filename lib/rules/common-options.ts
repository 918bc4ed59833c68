import { type AlgorithmOptions, algorithms } from '../algorithms/index.js';
import { givenOptions } from '../algorithms/options.js';
import type { CommonLimitOptions } from '../config/common-limit-options.js';
import type {
  BorrowingOptions,
  LimitDefaults,
  LimitDefinition,
  SharedLimitOptions,
} from '../config/limit-definition.js';
import { FEATURE_OPTIONS } from '../features/index.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';

/** What a limit of any algorithm may say. */
export type AllCommonOptions = CommonLimitOptions & SharedLimitOptions & BorrowingOptions;
type CommonOption = keyof AllCommonOptions;

/** The options of every limit, and those that are no algorithm's. */
export const COMMON: readonly CommonOption[] = [
  'name',
  'key',
  'cost',
  'priority',
  'reserveFor',
  'share',
  ...(FEATURE_OPTIONS as CommonOption[]),
  'within',
  'ceiling',
  'lends',
  'skip',
  'count',
  'blockFor',
  'forgetAfter',
  'prefetch',
  'candidate',
  'scope',
  'perRoute',
  'mode',
  'nearLimit',
  'phase',
  'onStoreError',
  'onMissingKey',
  'message',
  'body',
  'replicas',
];

/** What only a limit itself can say. */
const NO_DEFAULTS: readonly CommonOption[] = [
  'name',
  'share',
  ...(FEATURE_OPTIONS as CommonOption[]),
  'prefetch',
  'candidate',
  'reserveFor',
  'within',
  'ceiling',
  'lends',
  'perRoute',
  'phase',
  'replicas',
];
export const DEFAULTS = COMMON.filter((option) => !NO_DEFAULTS.includes(option)) as (keyof LimitDefaults)[];

/** Of these a limit that adapts takes over what it has not itself: those that say how it counts are not its own. */
const ADAPTIVE_DEFAULTS = DEFAULTS.filter(
  (option) => !['key', 'scope', 'count', 'blockFor', 'forgetAfter'].includes(option),
);

/** What a limit that adapts cannot have. */
const NOT_ADAPTIVE: readonly CommonOption[] = [
  'count',
  'blockFor',
  'forgetAfter',
  'prefetch',
  'candidate',
  'reserveFor',
  'share',
  ...(FEATURE_OPTIONS as CommonOption[]),
  'within',
  'ceiling',
  'lends',
  'replicas',
];

/** Reads what a limit says, and of what it says nothing, what all of the app have. Their values are checked elsewhere. */
export function commonOptions(
  definition: LimitDefinition,
  defaults: LimitDefaults,
  adapts: boolean,
  location: string,
): AllCommonOptions {
  refuseUnknownOptions(definition, location);
  const own = givenOptions<AllCommonOptions>(definition, COMMON);
  if (adapts) refuseWhatIsCountedElsewhere(own, definition.algo, location);
  return withDefaults(own, adapts ? givenOptions(defaults, ADAPTIVE_DEFAULTS) : defaults);
}

/** The rest, which is an algorithm's to read. */
export function algorithmOptions(definition: LimitDefinition): AlgorithmOptions {
  const own = Object.entries(definition)
    .filter(([option]) => !COMMON.includes(option as CommonOption))
    // Equal dates make equal limits.
    .map(([option, value]: [string, unknown]) => [option, value instanceof Date ? value.getTime() : value]);
  return Object.assign(Object.create(null) as AlgorithmOptions, Object.fromEntries(own));
}

/** Options that no algorithm knows are spelling mistakes; those of another algorithm are `CompiledLimit`'s to refuse. */
function refuseUnknownOptions(definition: LimitDefinition, location: string): void {
  const algorithm = algorithms.get(definition.algo);
  if (algorithm === undefined) return;
  const all = new Set<string>(['algo', ...COMMON, ...algorithms.options]);
  for (const option of Object.keys(definition)) {
    if (all.has(option)) continue;
    throw new RateLimitConfigError(messages.unknownOption(location, option, [...algorithm.options, ...COMMON]));
  }
}

/** How much fits is known here alone, and what is in flight counts, however it ends. */
function refuseWhatIsCountedElsewhere(own: AllCommonOptions, algo: string, location: string): void {
  for (const option of NOT_ADAPTIVE) {
    if (own[option] !== undefined) throw new RateLimitConfigError(messages.notWith(location, option, algo));
  }
}

function withDefaults(own: AllCommonOptions, defaults: LimitDefaults): AllCommonOptions {
  const hasOneBlock = own.blockFor !== undefined && !Array.isArray(own.blockFor);
  const left = Object.entries(defaults).filter(
    // Where blocks have no steps there is nothing to forget.
    ([option]) => own[option as keyof LimitDefaults] === undefined && !(option === 'forgetAfter' && hasOneBlock),
  );
  return Object.assign(own, Object.fromEntries(left));
}
