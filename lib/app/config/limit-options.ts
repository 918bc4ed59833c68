import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import { type AlgorithmOptions, algorithms } from '../../engine/algorithms/index.js';
import { configError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { optionMessages } from '../../engine/errors/messages/options.js';
import { PRIORITIES } from '../../engine/limits/arguments.js';
import { LIMIT_MODES, limitName, NEAR_LIMIT, STORE_ERROR_POLICIES } from '../../engine/limits/limit-settings.js';
import { unitName } from '../../engine/limits/money.js';
import { checkGiven, checkTogether } from '../../engine/options/check-options.js';
import {
  callable,
  callableOrClass,
  flag,
  fraction,
  inCode,
  orFunction,
  readLater,
  text,
  whole,
  words,
} from '../../engine/options/kinds.js';
import {
  dataOf,
  type OptionKind,
  type OptionRow,
  type OptionRows,
  requiredOf,
} from '../../engine/options/option-row.js';
import { getOrMake, isCallable } from '../../engine/util/objects.js';
import type { FeatureOptions } from '../../storage/features/index.js';
import { featureRows, secondVersion } from '../../storage/features/options.js';
import { HOOK_EXPECTED } from '../hooks/decision-hook.js';
import { MAX_STATUS, MIN_STATUS, REFUSAL_EXPECTED } from '../http/refusal-answer.js';
import { keyText } from '../key-resolvers/index.js';
import type { CommonLimitOptions } from './common-limit-options.js';
import { featureOptions, notAdapting } from './feature-options.js';
import { costKind, readMeasure } from './measured-cost.js';
import { isModuleOption } from './module-option-checks.js';

/** The options that a limit of any algorithm accepts. */
export type AllCommonOptions = CommonLimitOptions & FeatureOptions;

const LONGEST_MESSAGE = 1000;

const hook = callableOrClass(HOOK_EXPECTED);

const message: OptionKind = {
  expected: 'a string or a function that returns one',
  isValid: (value) => typeof value === 'string' || isCallable(value),
  data: {
    ...text(`a text of at most ${LONGEST_MESSAGE} characters`, `^[^]{0,${LONGEST_MESSAGE}}$`),
    schema: { type: 'string', maxLength: LONGEST_MESSAGE },
  },
};

/** The options of every limit that don't belong to a feature. */
const coreOptions = {
  name: { kind: inCode(limitName), text: 'Identifies the limit.', usual: 'such as gcra:20/1s' },
  key: {
    kind: readLater(keyText),
    text: "The key to count by: 'ip', 'user', 'global' or 'header:<name>'.",
    default: 'ip',
    inDefaults: notAdapting,
    onCommandLine: true,
  },
  cost: {
    kind: costKind,
    text: 'The units of a request.',
    default: 1,
    inDefaults: true,
  },
  priority: {
    kind: orFunction(words(PRIORITIES), 'a function of the context'),
    text: "How important requests are: 'critical', 'default' or 'sheddable'.",
    default: 'default',
    inDefaults: true,
  },
  skip: {
    kind: callable('a function of the context'),
    text: 'Selects requests that the limit does not count.',
    usual: 'none',
    inDefaults: true,
  },
  count: {
    kind: orFunction(words(['all', 'failed', 'succeeded']), 'a function of the outcome'),
    text: 'The requests that count.',
    default: 'all',
    inDefaults: true,
    for: notAdapting,
  },
  scope: {
    kind: words(['cluster', 'instance', 'world']),
    text: "'cluster' counts across all instances, 'instance' in each one separately, 'world' across all regions.",
    default: 'cluster',
    requiredFor: ({ adapting }) => adapting !== undefined,
    inDefaults: notAdapting,
  },
  perRoute: {
    kind: flag,
    text: 'True gives each route its own counter.',
    default: false,
  },
  mode: {
    kind: { ...words(['enforce', 'shadow']), data: words(LIMIT_MODES) },
    text: "'enforce' rejects, 'shadow' counts but never rejects, 'off' disables the limit.",
    default: 'enforce',
    inDefaults: true,
    live: 'mode',
    onCommandLine: true,
  },
  nearLimit: {
    kind: fraction,
    text: 'The share of the quota at which a counter is near its limit.',
    default: NEAR_LIMIT,
    inDefaults: true,
    live: 'policy',
  },
  unit: {
    kind: unitName,
    text: "The unit to display: a word such as 'tokens', or a currency such as 'USD', whose millionths are counted.",
    usual: 'none',
    live: 'policy',
  },
  phase: {
    kind: {
      ...words(['middleware', 'guard', 'authenticated']),
      expected: "one of guard, authenticated, or, of the module's 'limits', middleware",
    },
    text: "When the limit is checked: 'guard' before the guards of a route, 'authenticated' after them.",
    usual: 'by key',
  },
  onStoreError: {
    kind: orFunction(words(STORE_ERROR_POLICIES), 'a function that returns one'),
    text: 'What happens while the store fails.',
    usual: "the module's",
    inDefaults: true,
    live: 'policy',
  },
  onMissingKey: {
    kind: words(['ip', 'skip', 'refuse']),
    text: 'What happens to a request without a key.',
    usual: "the module's",
    inDefaults: true,
  },
  message: {
    kind: message,
    text: 'The message of a rejection.',
    default: 'Too many requests',
    inDefaults: true,
  },
  body: {
    kind: callable('a function that returns an object'),
    text: 'Returns the JSON body of a rejection.',
    usual: "the module's",
    inDefaults: true,
  },
  status: {
    kind: whole(MIN_STATUS, MAX_STATUS),
    text: 'The HTTP status of its rejections.',
    default: 429,
    inDefaults: notAdapting,
    for: notAdapting,
  },
  answer: {
    kind: callableOrClass(REFUSAL_EXPECTED),
    text: 'Returns the response to a rejected request.',
    usual: "the module's",
    inDefaults: true,
  },
  hidden: {
    kind: flag,
    text: 'True hides the limit from clients.',
    default: false,
    inDefaults: true,
  },
  retryAfter: {
    kind: flag,
    text: 'False omits the wait from rejections.',
    usual: "the module's",
    inDefaults: true,
  },
  onDecision: { kind: hook, text: 'Called with each decision of the limit.', usual: 'none' },
  onRefused: { kind: hook, text: 'Called with each decision that rejects, or would reject.', usual: 'none' },
  onNear: { kind: hook, text: 'Called once when a counter gets close to the limit.', usual: 'none' },
} as const satisfies OptionRows;

/** All limit options that don't belong to an algorithm. To add an option, add a row. */
export const limitOptions = { ...coreOptions, ...featureOptions, ...featureRows } as const satisfies Record<
  keyof AllCommonOptions,
  OptionRow
>;

export const commonRows: OptionRows = limitOptions;

export const COMMON_OPTIONS = Object.keys(commonRows) as (keyof AllCommonOptions)[];

/** Returns true if limits of any algorithm may have the option. */
export function isCommon(option: string): option is keyof AllCommonOptions {
  return Object.hasOwn(commonRows, option);
}

/** The common options that match a condition. */
export function commonOptionsThat(isSo: (row: OptionRow) => boolean): (keyof AllCommonOptions)[] {
  return COMMON_OPTIONS.filter((option) => isSo(commonRows[option]!));
}

/** Returns true if limits inherit the option from the module's `defaults`. With an algorithm: if limits of that algorithm do. */
export function isDefault(option: string, algorithm?: Algorithm): boolean {
  const { inDefaults = false, for: isFor } = commonRows[option]!;
  if (algorithm === undefined || inDefaults === false) return inDefaults !== false;
  return isFor?.(algorithm) !== false && (inDefaults === true || inDefaults(algorithm));
}

const ofAlgorithms = new WeakMap<Algorithm, OptionRows>();

/** The options that a limit of an algorithm accepts: those of the algorithm and the common ones that support it. */
export function optionsOf(algorithm: Algorithm): OptionRows {
  return getOrMake(ofAlgorithms, algorithm, () => {
    const common = commonOptionsThat((row) => row.for?.(algorithm) !== false);
    return { ...algorithm.options, ...Object.fromEntries(common.map((option) => [option, commonRows[option]!])) };
  });
}

/** The options of the limit's second version, or `undefined` if there is none. Throws `RateLimitConfigError`. */
export function secondVersionOf(definition: object, location: string): AlgorithmOptions | undefined {
  return secondVersion?.read(definition as never, location, { isCommon, optionsOf });
}

/** The options that are plain data, which a policy can set. */
export function dataOptions(rows: OptionRows): OptionRows {
  const data = Object.entries(rows).flatMap(([option, row]) => {
    const kind = dataOf(row.kind);
    return kind === undefined ? [] : [[option, { ...row, kind }] as const];
  });
  return Object.fromEntries(data);
}

/**
 * Checks the options of a limit: the algorithm supports each of them, the common ones have valid values, and they can be combined. The
 * algorithm checks the values of its own options. Throws `RateLimitConfigError`.
 * @param isPatch true if the options complement a limit in code, which may have the common options that are missing here
 */
export function checkLimit(definition: { readonly algo?: unknown }, location: string, isPatch = false): void {
  const algorithm = algorithms.get(definition.algo);
  if (algorithm !== undefined) refuseForeign(definition, algorithm, location, isPatch);
  checkGiven(location, definition, commonRows);
  readMeasure((definition as AllCommonOptions).cost, algorithm, location);
  if (algorithm !== undefined) {
    checkTogether(location, definition, optionsOf(algorithm), isPatch ? isCommon : undefined);
  }
}

/** Throws if an option is unknown or belongs to other algorithms only. */
function refuseForeign(definition: object, algorithm: Algorithm, location: string, isPatch: boolean): void {
  const known = optionsOf(algorithm);
  const lacking = () => {
    const missing = isPatch ? [] : requiredOf(known).filter((each) => !Object.hasOwn(definition, each));
    return optionMessages.lacking(algorithm.name, missing);
  };
  for (const [option, value] of Object.entries(definition)) {
    if (option === 'algo' || Object.hasOwn(known, option)) continue;
    if (!isCommon(option) && algorithms.withOption(option).length === 0) {
      const names = Object.keys(known);
      if (isModuleOption(option)) {
        throw configError(
          'SLUICE_MISPLACED_OPTION',
          messages.misplacedOption(location, option, 'RateLimitModule', names),
        );
      }
      throw configError('SLUICE_UNKNOWN_OPTION', messages.unknownOption(location, option, names, lacking()));
    }
    if (value !== undefined)
      throw configError(
        'SLUICE_UNSUPPORTED_OPTION',
        optionMessages.at(location, refusalOf(option, algorithm) + lacking()),
      );
  }
}

/** The message for an option that this algorithm doesn't support but others do. */
export function refusalOf(option: string, { name }: Algorithm): string {
  if (!isCommon(option)) return optionMessages.foreign(option, name, algorithms.withOption(option));
  const { for: isFor, because } = commonRows[option]!;
  const able = algorithms.namesOf((algorithm) => isFor?.(algorithm) !== false);
  return optionMessages.notFor(option, name, able, because);
}

/** The owner of an option that is unknown in some place, for messages; `undefined` if it is unknown everywhere. */
export function ownerOfOption(option: string): string | undefined {
  if (isCommon(option)) return isDefault(option) ? "a limit, or of the module's 'defaults'" : 'a limit';
  if (option === 'algo' || algorithms.withOption(option).length > 0) return 'a limit';
  return isModuleOption(option) ? 'RateLimitModule' : undefined;
}
