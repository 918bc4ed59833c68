import { Calendar, isTimezone, timezone } from '../../../engine/algorithms/calendar.js';
import { object, timeSchemas, whole } from '../../../engine/options/kinds.js';
import type { OptionKind, OptionRow, OptionRows } from '../../../engine/options/option-row.js';
import { type Duration, DURATION_UNITS, longDuration } from '../../../engine/options/values.js';

/** How long the charged units of a limit can be read, and the time zone of its days. */
export interface UsageOptions {
  /** How long a day can be read after its end: milliseconds or a duration such as `'400d'`, from 1 day to 10 years. */
  keep: Duration;
  /**
   * The IANA time zone of the days, such as `'Europe/Berlin'`.
   * @default the limit's own `timezone`, or 'UTC'
   */
  timezone?: string | undefined;
  /**
   * The approximate maximum number of keys to record. Further keys are charged but not recorded; an export, and `usage` of such a key, log
   * a warning. In process the number is exact; on Redis each slot has its share of it, with some reserve. From 1 to 100,000,000.
   * @default no maximum
   */
  maxKeys?: number | undefined;
}

/** A limit's validated `usage`. */
export interface UsageTerms {
  /** How long a day can be read after its end, in microseconds. */
  readonly keep: number;
  /** The IANA time zone of the days. */
  readonly timezone: string;
  /** The approximate maximum number of keys with a record; `undefined` for no maximum. */
  readonly maxKeys?: number | undefined;
}

/** The settings by which a limit records its charges. */
export interface UsageRecording extends UsageTerms {
  readonly days: Calendar;
}

/** The recording of a limit with these terms. */
export function recordingOf(terms: UsageTerms): UsageRecording {
  return { ...terms, days: new Calendar('day', terms.timezone) };
}

const MIN_KEEP_MS = 86_400_000;
const MAX_KEEP_MS = 10 * 365.25 * 86_400_000;

const keep: OptionKind<number> = {
  expected: `milliseconds or a duration such as '400d' ${DURATION_UNITS}, at least 1 day and at most 10 years`,
  isValid: (value) => longDuration(value) >= MIN_KEEP_MS && longDuration(value) <= MAX_KEEP_MS,
  schema: { anyOf: timeSchemas({ minimum: MIN_KEEP_MS, maximum: MAX_KEEP_MS }) },
};

const row: OptionRow = {
  kind: object(
    `${keep.expected}; or { keep, timezone?, maxKeys? } such as { keep: '400d', timezone: 'Europe/Berlin' }`,
    {
      keep: { kind: keep, text: "How long a day can be read after its end, such as '400d'.", required: true },
      timezone: { kind: timezone, text: 'The time zone of the days.', usual: "the limit's own, or 'UTC'" },
      maxKeys: {
        kind: whole(1, 100_000_000),
        text: 'Approximate maximum number of keys to record.',
        usual: 'no bound',
      },
    },
    { or: keep },
  ),
  text: "Records the units that each key is charged per day, and sets how long a day can be read: '400d'.",
  usual: 'nothing is recorded',
  needsName: true,
  for: ({ leases, adapting }) => leases === undefined && adapting === undefined,
  because: 'its units are given back when the work ends',
  excludes: [
    // Its units are taken before they are requested.
    'prefetch',
    { option: 'within', expected: "'usage' on the outermost limit, which is within no other" },
  ],
};

export const usageOptions: OptionRows = { usage: row };

/** The terms of a validated `usage`. `timezone` is the limit's own. */
export function usageTerms(options: {
  readonly usage?: Duration | UsageOptions;
  readonly timezone?: unknown;
}): UsageTerms | undefined {
  const { usage } = options;
  if (usage === undefined) return undefined;
  // The algorithm reports an invalid one, as the limit's own.
  const own = isTimezone(options.timezone) ? options.timezone : 'UTC';
  const { keep: kept, timezone: zone = own, maxKeys } = typeof usage === 'object' ? usage : { keep: usage };
  return {
    keep: Math.round(longDuration(kept) * 1000),
    timezone: zone,
    ...(maxKeys === undefined ? {} : { maxKeys }),
  };
}
