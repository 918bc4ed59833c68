import { time, whole } from '../options/kinds.js';
import type { OptionRows } from '../options/option-row.js';

/** The rate options of most algorithms. */
export const rateOptions = {
  rate: { kind: whole(), text: 'Units that are allowed an interval or a period.', required: true },
  interval: {
    kind: time,
    text: "The interval of the rate: milliseconds or a duration such as '10s', at most 1 year.",
    required: true,
    isLong: true,
  },
} as const satisfies OptionRows;

/** The rate options of algorithms that allow bursts. */
export const burstOptions = {
  ...rateOptions,
  burst: { kind: whole(), text: 'Units that may come at once.', usual: 'the rate' },
} as const satisfies OptionRows;
