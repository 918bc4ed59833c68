import type { OptionRow, OptionRows } from '../options/option-row.js';
import type { FeatureOptions } from './index.js';
import { usageOptions } from './usage/terms.js';

/** The options of each feature. They are separate from the features, since the command line program needs no more. */
const list: readonly OptionRows[] = [usageOptions];

/** The rows of all of them. */
export const featureRows = Object.assign({}, ...list) as Record<keyof FeatureOptions, OptionRow>;
