import { algorithms } from '../algorithms/index.js';
import { type Duration } from '../algorithms/options.js';
import type { OnMissingKey } from '../config/common-limit-options.js';
import type { ShareOptions } from '../config/limit-definition.js';
import { borrowMessages } from '../errors/messages/borrow.js';
import { listOf } from '../errors/wording.js';
import { priorityMessages } from '../errors/messages/priority.js';
import { shareMessages } from '../errors/messages/share.js';
import { withinMessages } from '../errors/messages/within.js';
import { keySchemes } from '../key-resolvers/index.js';
import { BLOCK_WANTS, blockTerms, MAX_STEPS } from '../limits/block-terms.js';
import { STORE_ERROR_POLICIES } from '../limits/limit-settings.js';
import { PRIORITIES } from '../limits/priority.js';
import { isShares, RESERVABLE } from '../limits/reserve-terms.js';
import { usageMessages } from '../features/usage/messages.js';
import { KEEP_WANTS, MAX_KEEP_MS, MIN_KEEP_MS, MOST_KEYS, usageTerms } from '../features/usage/terms.js';
import { LIMIT_MODES } from '../overrides/override.js';
import { MOST_REPLICAS } from '../rules/replica-terms.js';
import { isWeights, MAX_WEIGHT, shareTerms } from '../rules/share-terms.js';
import { ALGORITHM_KINDS, CANDIDATE_KINDS } from './algorithm-kinds.js';
import {
  flag,
  fraction,
  type JsonSchema,
  type OptionKind,
  succeeds,
  time,
  TIME_SCHEMAS,
  timezone,
  whole,
  words,
} from './option-kind.js';

const LONGEST_MESSAGE = 1000;

const KEEP_SCHEMAS: readonly JsonSchema[] = [
  { type: 'number', minimum: MIN_KEEP_MS, maximum: MAX_KEEP_MS },
  TIME_SCHEMAS[1]!,
];

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
    maxKeys: whole(1, MOST_KEYS),
  },
  isPartial: true,
  isEither: true,
  schema: {
    anyOf: [
      ...KEEP_SCHEMAS,
      {
        type: 'object',
        properties: { keep: { anyOf: KEEP_SCHEMAS }, timezone: timezone.schema, maxKeys: whole(1, MOST_KEYS).schema },
        required: ['keep'],
        additionalProperties: false,
      },
    ],
  },
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
  cost: whole(0),
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
  replicas: whole(1, MOST_REPLICAS),
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

function raise(reason: string): never {
  throw new Error(reason);
}
