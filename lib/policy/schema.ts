import { algorithms } from '../algorithms/index.js';
import { CAUSE_PATTERN } from '../overrides/change-options.js';
import { LONGEST_KEY } from '../overrides/override-address.js';
import type { JsonSchema, OptionKind } from './option-kind.js';
import { LIMIT_KINDS } from './limit-kinds.js';
import { OVERRIDE_KINDS } from './read-overrides.js';

/** The options that a limit of an algorithm cannot do without. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  'fixed-window': ['rate', 'interval'],
  'calendar-window': ['rate', 'period'],
  budget: ['limit', 'period'],
  'sliding-window': ['rate', 'interval'],
  'sliding-log': ['rate', 'interval'],
  'token-bucket': ['rate', 'interval'],
  gcra: ['rate', 'interval'],
  'leaky-bucket': ['rate', 'interval'],
  concurrency: ['limit', 'ttl'],
  adaptive: ['scope'],
};

/** What editors show of an option. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  algo: 'The algorithm. A limit that code defines needs none, and a candidate has that of its limit.',
  rate: 'Units that are allowed an interval or a period.',
  interval: "The interval of the rate: milliseconds or a duration such as '10s', at most 1 year.",
  burst: 'Units that may come at once. Default: the rate.',
  refill: "How tokens flow in: 'greedy', evenly, or 'intervally', all at once. Default: 'greedy'.",
  warmUp: 'Lets a cold limit allow a share of its rate, which rises to all of it while it is used.',
  for: 'How long it takes to warm up, and to cool.',
  from: 'The share of its rate that a cold limit allows.',
  queue: 'Units that may wait, besides the one that leaves at once. Default: the rate.',
  slices: 'Into how many slices the window is cut. Default: 10.',
  period: 'The window of the calendar.',
  timezone: "An IANA time zone, such as 'Europe/Berlin'. Default: 'UTC'.",
  anchor:
    "Where windows begin, such as '2026-01-31': an ISO 8601 date, or milliseconds. Default: as the calendar's own.",
  rollover: 'The share of what is left of a window that moves into the next one, once. Default: none.',
  credits: 'Takes prepaid units once a window is used up. Default: there are none.',
  retain: "How long a finished window can still be read, such as '7d'. Default: not at all.",
  hold: "How long reserved units are held that nobody settles, such as '5m'. Default: '5m' of a budget, else no reservations.",
  onLapse: "What becomes of held units then: 'charge' or 'release'. Default: 'charge'.",
  limit: 'Units that may be held at the same time, or spent a period.',
  ttl: 'How long units are held that nobody releases: milliseconds or a duration.',
  min: 'Units that an adaptive limit lets in at least. Default: 2.',
  max: 'Units that it lets in at most. Default: 1000.',
  initial: 'Its limit before anything is learnt. Default: 20.',
  tolerance: 'How many times as long as without load requests may take before it falls. Default: 1.5.',
  smoothing: 'The part of the way to a lower limit that is gone in a window. Default: 0.5.',
  window: "How often it is looked at, such as '500ms', which is the default.",
  probeEvery: "How long the latency without load is believed under load. Default: '30s'.",
  eventLoopDelay: "It does not grow while the event loop is late by more. Default: '100ms'.",
  cpu: 'It does not grow while the process uses more of its processors. Default: 0.9.',
  shares: 'The shares of it that sheddable and default requests may take. Default: 0.6 and 0.9.',
  status: 'The HTTP status of its refusals. Default: 503.',
  priority: "How important requests are: 'critical', 'default' or 'sheddable'. Default: 'default'.",
  key: "Whom the limit counts: 'ip', 'user', 'global' or 'header:<name>'. Default: 'ip'.",
  cost: 'The units of a request. Default: 1.',
  reserveFor: 'Shares of the quota that only requests of a priority, or a more important one, may take.',
  share: 'Shares the units among tenants: under contention each gets a part by its weight.',
  by: "The tenant of a request: 'ip', 'user', 'global' or 'header:<name>'.",
  weight: "The weights of tenants, by 'user:42' or the value of the header. Default: 1 for each.",
  unlisted: "Whether tenants that 'weight' does not name count each for itself or together. Default: 'each'.",
  floor: 'The share of the quota that each active tenant may use at least. Default: 0.',
  usage: "Records the units that each key is charged, by days, and says how long a day can be read: '400d'.",
  within: 'The name of a limit that this one is within: both are charged together, or none.',
  ceiling: 'The most units of an interval with what is borrowed of the limit that it is within.',
  lends: 'The share of the quota that limits within this one may borrow. Default: 1.',
  count: "The requests that count. Default: 'all'.",
  blockFor:
    "Blocks a refused key for this time, such as '15m', or longer with each offence: ['1m', '1h']. Default: no block.",
  forgetAfter: "Forgets offences so long after the last block, where 'blockFor' is a list. Default: its last time.",
  candidate: 'A second version of the limit that is counted beside it and never refuses: the options that differ.',
  prefetch: 'Lets an instance take several units in one call of Redis, and decide in process.',
  critical: "The share that only requests of priority 'critical' may take.",
  default: "The share that requests of priority 'sheddable' may not take.",
  units: 'The most units that are taken in one call.',
  scope: "'cluster' counts across all instances, 'instance' in each for itself. Default: 'cluster'.",
  perRoute:
    'Whether each route has a counter of its own; for limits of the module, of a class and of a route. Default: false.',
  mode: "'enforce' refuses, 'shadow' counts and never refuses, 'off' does not ask the limit. Default: 'enforce'.",
  nearLimit: 'The share of the quota from which on the limit is near. Default: 0.8.',
  phase: "When the limit is checked. Default: 'authenticated' for key 'user', else 'guard'.",
  onStoreError: "What happens while the store fails. Default: the module's.",
  replicas:
    'How many replicas of Redis have to confirm what is charged before the call is answered. Default: none is asked.',
  onMissingKey: "What happens to a request without a key. Default: the module's.",
  message: 'The message of the response when the limit refuses.',
};

const NAMES = { type: 'string', pattern: '^[ -~]{1,128}$' };
const KEYS = { type: 'string', pattern: '^([^*]+[*]?)$', maxLength: LONGEST_KEY };

const LIST = { type: ['array', 'null'], items: { $ref: '#/definitions/entry' } };
const LIST_ENTRY = {
  type: 'object',
  properties: {
    ip: { description: "An address, or a network such as '10.0.0.0/8'.", type: 'string', minLength: 2 },
    identity: { description: "A key, such as 'tenant:acme'.", ...KEYS, pattern: '^[^*]+$' },
    pattern: { description: "The beginning of keys, such as 'tenant:*'.", ...KEYS, pattern: '^[^*]+[*]$' },
    limit: { description: 'The name of a limit. Default: all limits.', ...NAMES },
    reason: { description: 'Why it is there.', type: 'string', pattern: CAUSE_PATTERN.replace(/\$$/, '\\n?$') },
  },
  additionalProperties: false,
  oneOf: ['ip', 'identity', 'pattern'].map((form) => ({ required: [form], properties: { [form]: true } })),
};

/** The JSON Schema of policies, for editors: `limits.schema.json` in the package. What the reader takes, it allows. */
export function policySchema(): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'A policy of nestjs-sluice',
    type: 'object',
    properties: {
      $schema: { type: 'string' },
      limits: named('Limits by their names: new ones, and options of those that code defines.', {
        $ref: '#/definitions/limit',
      }),
      overrides: named('Overrides by the names of their limits, and by key.', {
        type: 'object',
        propertyNames: KEYS,
        additionalProperties: { $ref: '#/definitions/override' },
      }),
      lists: {
        description: "Who is exempt from limits ('allow'), and who is refused ('deny').",
        type: ['object', 'null'],
        properties: { allow: LIST, deny: LIST },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
    definitions: {
      limit: {
        ...objectOf(LIMIT_KINDS),
        minProperties: 1,
        allOf: algorithms.names.map((algo) => limitOf(algo)),
      },
      entry: LIST_ENTRY,
      override: { ...objectOf(OVERRIDE_KINDS), minProperties: 1 },
    },
  };
}

/** A section with nothing in it is `null` in YAML. */
function named(description: string, additionalProperties: JsonSchema): JsonSchema {
  return { description, type: ['object', 'null'], propertyNames: NAMES, additionalProperties };
}

function objectOf(kinds: Readonly<Record<string, OptionKind>>): JsonSchema {
  const properties = Object.entries(kinds).map(([name, kind]) => [
    name,
    { description: DESCRIPTIONS[name], ...schemaOf(kind) },
  ]);
  return { type: 'object', properties: Object.fromEntries(properties), additionalProperties: false };
}

function schemaOf({ schema, options, isPatch, isPartial, isEither, needs }: OptionKind): JsonSchema {
  if (options === undefined || isEither === true) return schema;
  if (isPartial === true) return { ...objectOf(options), ...(needs ? { required: needs } : { minProperties: 1 }) };
  if (isPatch !== true) return { ...objectOf(options), required: Object.keys(options) };
  return { ...objectOf(options), ...schema, allOf: algorithms.names.map((algo) => limitOf(algo, [])) };
}

/** What a limit of an algorithm has, and what it has not. */
function limitOf(algo: string, required = REQUIRED[algo] ?? []): JsonSchema {
  const { options: own, sharing } = algorithms.get(algo)!;
  const others = [...new Set(algorithms.options)].filter((option) => !own.includes(option));
  // A candidate has no shares, whatever its algorithm.
  const foreign = sharing === undefined && required.length > 0 ? [...others, 'share'] : others;
  return {
    if: { properties: { algo: { const: algo } }, required: ['algo'] },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: {
      required,
      properties: Object.fromEntries([...required, ...foreign].map((option) => [option, required.includes(option)])),
    },
  };
}
