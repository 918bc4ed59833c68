import { fixedAnchor } from '../algorithms/anchor.js';
import { PERIODS } from '../algorithms/calendar.js';
import { LAPSES } from '../algorithms/hold-terms.js';
import { algorithms } from '../algorithms/index.js';
import { isRollover } from '../algorithms/plan-terms.js';
import { planMessages } from '../errors/messages/plan.js';
import { warmUpMessages } from '../errors/messages/warm-up.js';
import { fraction, type OptionKind, succeeds, time, timezone, whole, words } from './option-kind.js';

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

/** What the schema says: that one is at most the other is the compiler's to say. */
function isAdaptiveShares(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.entries(value).every(([name, each]) => ['sheddable', 'default'].includes(name) && fraction.isRight(each))
  );
}
