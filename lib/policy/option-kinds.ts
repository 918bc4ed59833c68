import { algorithms } from '../algorithms/index.js';
import { fixedAnchor } from '../algorithms/anchor.js';
import { isTimezone, PERIODS } from '../algorithms/calendar.js';
import { LAPSES } from '../algorithms/hold-terms.js';
import { isRollover } from '../algorithms/plan-terms.js';
import { type Duration, duration, MAX_INTERVAL_MS } from '../algorithms/options.js';
import { listOf } from '../errors/messages.js';
import { keySchemes } from '../key-resolvers/index.js';
import { BLOCK_WANTS, blockTerms, MAX_STEPS } from '../limits/block-terms.js';
import { STORE_ERROR_POLICIES } from '../limits/compiled-limit.js';
import { PRIORITIES } from '../limits/priority.js';
import { isShares, RESERVABLE } from '../limits/reserve-terms.js';
import { KEEP_WANTS, MAX_KEEP_MS, MIN_KEEP_MS, usageTerms } from '../limits/usage-terms.js';
import { planMessages } from '../errors/plan-messages.js';
import { priorityMessages } from '../errors/priority-messages.js';
import { usageMessages } from '../errors/usage-messages.js';
import { borrowMessages } from '../errors/borrow-messages.js';
import { withinMessages } from '../errors/within-messages.js';
import { warmUpMessages } from '../errors/warm-up-messages.js';
import { shareMessages } from '../errors/share-messages.js';
import { isWeights, MAX_WEIGHT, shareTerms } from '../rules/share-terms.js';
import type { OnMissingKey, ShareOptions } from '../config/limit-definition.js';
import { LIMIT_MODES } from '../overrides/override.js';

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** What an option takes as data: for the reader, for its messages, and for editors. */
export interface OptionKind {
  readonly wants: string;
  readonly isRight: (value: unknown) => boolean;
  readonly schema: JsonSchema;
  /** The options of one that is an object itself; all of them are needed, unless it is a patch. */
  readonly options?: Readonly<Record<string, OptionKind>>;
  /** It is an object of some options, at least one, or `null` for none. */
  readonly isPatch?: true;
  /** It is an object of some options, at least one; `isRight` looks at it as a whole. */
  readonly isPartial?: true;
  /** Those of `options` that it cannot do without, where it needs not all. */
  readonly needs?: readonly string[];
  /** What each value has of one that is an object of any names; `isRight` looks at it as a whole, too. */
  readonly named?: OptionKind;
  /** It may also be something else than an object; `isRight` looks at that, and `schema` is of both. */
  readonly isEither?: true;
  /** What each has of one that may be a list; `isRight` looks at the list as a whole, too. */
  readonly each?: OptionKind;
}

const LONGEST_MESSAGE = 1000;

const whole = (min = 1, max = Number.MAX_SAFE_INTEGER): OptionKind => {
  const isBounded = max < Number.MAX_SAFE_INTEGER;
  return {
    wants: `a whole number >= ${min}${isBounded ? ` and <= ${max}` : ''}`,
    isRight: (value) => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max,
    schema: { type: 'integer', minimum: min, maximum: max },
  };
};

const words = (list: readonly string[]): OptionKind => ({
  wants: `one of ${list.join(', ')}`,
  isRight: (value) => list.includes(value as string),
  schema: { enum: list },
});

const fraction: OptionKind = {
  wants: 'a number > 0 and <= 1',
  isRight: (value) => typeof value === 'number' && value > 0 && value <= 1,
  schema: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
};

const TIME_SCHEMAS: readonly JsonSchema[] = [
  { type: 'number', exclusiveMinimum: 0, maximum: MAX_INTERVAL_MS },
  { type: 'string', pattern: '^[+]?[0-9]*[.]?[0-9]+ *[A-Za-z]*$', maxLength: 100 },
];

const KEEP_SCHEMAS: readonly JsonSchema[] = [
  { type: 'number', minimum: MIN_KEEP_MS, maximum: MAX_KEEP_MS },
  TIME_SCHEMAS[1]!,
];

const time: OptionKind = {
  wants: "milliseconds or a duration such as '250ms', '10s', '1m', more than 0 and at most 1 year",
  isRight: (value) => succeeds(() => duration('', '', value)),
  schema: { anyOf: TIME_SCHEMAS },
};

const flag: OptionKind = {
  wants: 'true or false',
  isRight: (value) => typeof value === 'boolean',
  schema: { type: 'boolean' },
};

/** A form of `key` that can be written as text. */
const key: OptionKind = {
  wants: listOf(["'ip'", "'user'", "'global'", "'header:<name>'"], 'or'),
  isRight: (value) =>
    typeof value === 'string' &&
    keySchemes.some((scheme) => succeeds(() => scheme.parse(value, '') ?? raise('not of this form'))),
  schema: { type: 'string', pattern: "^(ip|user|global|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$" },
};

const prefetch: OptionKind = {
  wants: "{ units, ttl } such as { units: 100, ttl: '100ms' }",
  isRight: () => true,
  schema: { type: 'object' },
  options: { units: whole(), ttl: time },
};

/** One time, or steps: one for each offence. */
const blocks: OptionKind = {
  wants: BLOCK_WANTS,
  isRight: (value) => succeeds(() => blockTerms({ blockFor: value as Duration }, '')),
  schema: { anyOf: [...TIME_SCHEMAS, { type: 'array', items: time.schema, minItems: 1, maxItems: MAX_STEPS }] },
  each: time,
};

/** A part of a whole, and not all of it. */
const part: OptionKind = {
  wants: 'a number > 0 and < 1',
  isRight: (value) => typeof value === 'number' && value > 0 && value < 1,
  schema: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
};

const shares: OptionKind = {
  wants: priorityMessages.reserveForWants(RESERVABLE),
  isRight: isShares,
  schema: { type: 'object' },
  options: Object.fromEntries(RESERVABLE.map((priority) => [priority, part])),
  isPartial: true,
};

const weight = whole(1, MAX_WEIGHT);

/** The parts of tenants, without functions. */
const share: OptionKind = {
  wants: shareMessages.wants(),
  isRight: (value) => succeeds(() => shareTerms({ share: value as ShareOptions }, '')),
  schema: { type: 'object' },
  options: {
    by: key,
    weight: {
      wants: 'an object of whole numbers >= 1 and <= 1000000 by tenant',
      isRight: isWeights,
      schema: { type: 'object', minProperties: 1, additionalProperties: weight.schema },
      named: weight,
    },
    unlisted: words(['each', 'together'] satisfies ShareOptions['unlisted'][]),
    floor: {
      wants: shareMessages.floorWants(),
      isRight: (value) => typeof value === 'number' && value >= 0 && value <= 1,
      schema: { type: 'number', minimum: 0, maximum: 1 },
    },
  },
  isPartial: true,
  needs: ['by'],
};

const timezone: OptionKind = {
  wants: "an IANA time zone such as 'UTC' or 'Europe/Berlin'",
  isRight: isTimezone,
  schema: { type: 'string', minLength: 1 },
};

const usage: OptionKind = {
  wants: usageMessages.wants(),
  isRight: (value) => succeeds(() => usageTerms({ usage: value }, '')),
  options: {
    keep: {
      wants: KEEP_WANTS,
      isRight: (value) => succeeds(() => usageTerms({ usage: { keep: value } }, '')),
      schema: { anyOf: KEEP_SCHEMAS },
    },
    timezone,
  },
  isPartial: true,
  isEither: true,
  schema: {
    anyOf: [
      ...KEEP_SCHEMAS,
      {
        type: 'object',
        properties: { keep: { anyOf: KEEP_SCHEMAS }, timezone: timezone.schema },
        required: ['keep'],
        additionalProperties: false,
      },
    ],
  },
};

const warmUp: OptionKind = {
  wants: warmUpMessages.wants(),
  isRight: () => true,
  schema: { type: 'object' },
  options: {
    for: time,
    from: {
      wants: 'a number >= 0.001 and < 1',
      isRight: (value) => typeof value === 'number' && value >= 0.001 && value < 1,
      schema: { type: 'number', minimum: 0.001, exclusiveMaximum: 1 },
    },
  },
};

/** The options of algorithms. */
export const ALGORITHM_KINDS: Readonly<Record<string, OptionKind>> = {
  rate: whole(),
  interval: time,
  burst: whole(),
  refill: words(['greedy', 'intervally']),
  warmUp,
  queue: whole(0),
  slices: whole(1, 1000),
  period: words(PERIODS),
  timezone,
  anchor: {
    wants: planMessages.fixedAnchorWants(),
    isRight: (value) => succeeds(() => fixedAnchor(value, 'UTC', '')),
    schema: { anyOf: [{ type: 'number' }, { type: 'string', pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T.+)?$' }] },
  },
  rollover: {
    wants: planMessages.rolloverWants(),
    isRight: isRollover,
    schema: { type: 'number', minimum: 0.0000005, maximum: 1 },
  },
  credits: { wants: planMessages.creditsWants(), isRight: (value) => value === true, schema: { const: true } },
  retain: time,
  hold: time,
  onLapse: words(LAPSES),
  limit: whole(),
  ttl: time,
  min: whole(1, 1_000_000),
  max: whole(1, 1_000_000),
  initial: whole(1, 1_000_000),
  tolerance: {
    wants: 'a number > 1 and <= 10',
    isRight: (value) => typeof value === 'number' && value > 1 && value <= 10,
    schema: { type: 'number', exclusiveMinimum: 1, maximum: 10 },
  },
  smoothing: fraction,
  window: time,
  probeEvery: time,
  eventLoopDelay: time,
  cpu: fraction,
  shares: {
    wants: '{ sheddable, default } of numbers > 0 and <= 1, such as { sheddable: 0.6, default: 0.9 }',
    isRight: isAdaptiveShares,
    named: fraction,
    schema: {
      type: 'object',
      properties: { sheddable: fraction.schema, default: fraction.schema },
      additionalProperties: false,
    },
  },
  status: whole(400, 599),
};

/** The options of a candidate. */
export const CANDIDATE_KINDS: Readonly<Record<string, OptionKind>> = {
  algo: words(algorithms.names),
  ...ALGORITHM_KINDS,
};

const candidate: OptionKind = {
  wants: 'an object of options of an algorithm, at least one, such as { rate: 60 }, or null for no candidate',
  isRight: (value) => value === null,
  schema: { type: ['object', 'null'], minProperties: 1 },
  options: CANDIDATE_KINDS,
  isPatch: true,
};

const limitName: OptionKind = {
  wants: withinMessages.wants(),
  isRight: (value) => typeof value === 'string' && /^[\x20-\x7e]{1,128}$/.test(value),
  schema: { type: 'string', pattern: '^[ -~]{1,128}$' },
};

/** The options of every limit: all of `CommonLimitOptions` that are data. The name is where the limit stands. */
export const COMMON_KINDS: Readonly<Record<string, OptionKind>> = {
  key,
  cost: whole(),
  priority: words(PRIORITIES),
  reserveFor: shares,
  share,
  usage,
  within: limitName,
  ceiling: whole(),
  lends: {
    wants: borrowMessages.lendsWants(),
    isRight: (value) => typeof value === 'number' && value >= 0 && value <= 1,
    schema: { type: 'number', minimum: 0, maximum: 1 },
  },
  count: words(['all', 'failed', 'succeeded']),
  blockFor: blocks,
  forgetAfter: time,
  prefetch,
  candidate,
  scope: words(['cluster', 'instance']),
  perRoute: flag,
  mode: words(LIMIT_MODES),
  nearLimit: fraction,
  phase: words(['middleware', 'guard', 'authenticated']),
  onStoreError: words(STORE_ERROR_POLICIES),
  onMissingKey: words(['ip', 'skip', 'refuse'] satisfies OnMissingKey[]),
  message: {
    wants: `a text of at most ${LONGEST_MESSAGE} characters`,
    isRight: (value) => typeof value === 'string' && value.length <= LONGEST_MESSAGE,
    schema: { type: 'string', maxLength: LONGEST_MESSAGE },
  },
};

/** Every option of a limit, its algorithm included. */
export const LIMIT_KINDS: Readonly<Record<string, OptionKind>> = {
  algo: words(algorithms.names),
  ...ALGORITHM_KINDS,
  ...COMMON_KINDS,
};

/** What the schema says: that one is at most the other is the compiler's to say. */
function isAdaptiveShares(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.entries(value).every(([name, each]) => ['sheddable', 'default'].includes(name) && fraction.isRight(each))
  );
}

function succeeds(call: () => unknown): boolean {
  try {
    call();
    return true;
  } catch {
    return false;
  }
}

function raise(reason: string): never {
  throw new Error(reason);
}
