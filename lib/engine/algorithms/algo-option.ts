import { words } from '../options/kinds.js';
import type { OptionRow } from '../options/option-row.js';
import { algorithms } from './index.js';

/** The algorithm of a limit, or of a candidate. */
export const algoOption: OptionRow = {
  kind: words(algorithms.names),
  text: 'The algorithm. A limit that code defines needs none, and a candidate has that of its limit.',
};
