import { algoOption, algorithms } from '../../engine/algorithms/index.js';
import { commonOptionsThat, dataOptions, limitOptions } from '../config/limit-options.js';
import type { OptionRows } from '../../engine/options/option-row.js';

/** The options that a policy can set for a limit: all that are plain data. The name is the key of the limit's entry. */
export const policyOptions: OptionRows = dataOptions({ algo: algoOption, ...algorithms.options, ...limitOptions });

const ofKeys = commonOptionsThat(({ live }) => live === 'rate' || live === 'mode');

/** The options that an override can set, which are the ones that `setRate` and `setMode` can change. */
export const overrideOptions: OptionRows = dataOptions({
  ...algorithms.options,
  ...Object.fromEntries(ofKeys.map((option) => [option, limitOptions[option]])),
});
