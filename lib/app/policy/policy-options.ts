import { algoOption } from '../../engine/algorithms/algo-option.js';
import { algorithms } from '../../engine/algorithms/index.js';
import { commonOptionsThat, dataOptions, limitOptions } from '../config/limit-options.js';
import type { OptionRows } from '../../engine/options/option-row.js';

/** What a policy can set for a limit: all of its options that are data. The name is the key of the limit's entry. */
export const policyOptions: OptionRows = dataOptions({ algo: algoOption, ...algorithms.options, ...limitOptions });

const ofKeys = commonOptionsThat(({ live }) => live === 'rate' || live === 'mode');

/** What an override can set: what `setRate` and `setMode` can change. */
export const overrideOptions: OptionRows = dataOptions({
  ...algorithms.options,
  ...Object.fromEntries(ofKeys.map((option) => [option, limitOptions[option]])),
});
