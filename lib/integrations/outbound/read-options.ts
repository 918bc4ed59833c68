import { wholeNumber, refuseUnknown } from '../../engine/options/check-options.js';
import { DURATION_FORM, givenOptions, milliseconds } from '../../engine/options/values.js';
import { isRecord } from '../../app/config/module-option-checks.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { isCost } from '../../engine/limits/arguments.js';
import type { UpstreamParser } from '../../engine/limit-headers/upstream-report.js';
import { parseUpstream, type Upstream, type UpstreamName, upstreams } from './headers/upstreams.js';
import type { OutboundOptions } from './outbound-options.js';

/** Validated options with defaults filled in. */
export interface OutboundSettings<Sent, Answer> {
  /** The place where the options were passed, for messages. */
  readonly location: string;
  readonly key: NonNullable<OutboundOptions<Sent, Answer>['key']>;
  readonly cost: OutboundOptions<Sent, Answer>['cost'];
  readonly timeoutMs: number;
  readonly settle: OutboundOptions<Sent, Answer>['settle'];
  readonly priority: NonNullable<OutboundOptions<Sent, Answer>['priority']>;
  readonly ageingMs: number;
  readonly parse: UpstreamParser;
  readonly readsBody: boolean;
  readonly maxLearnedWaitMs: number;
  /** The names of the upstream's limits by the names of ours; or true if limits learn at all. */
  readonly learn: boolean | Readonly<Record<string, string>>;
  /** Maximum number of times to send a call. */
  readonly attempts: number;
}

const KNOWN = [
  'key',
  'cost',
  'timeout',
  'settle',
  'learn',
  'parser',
  'maxLearnedWait',
  'retry',
  'priority',
  'ageing',
] as const;
const DURATION = `${DURATION_FORM}, at most 1 year`;

/** Reads the options of calls. Throws `RateLimitConfigError`. */
export function readOptions<Sent, Answer>(given: unknown, location: string): OutboundSettings<Sent, Answer> {
  if (given !== undefined && (!isRecord(given) || Array.isArray(given))) {
    throw new RateLimitConfigError(messages.notOptions(location, given));
  }
  refuseUnknown(location, given ?? {}, KNOWN);
  const options = givenOptions<OutboundOptions<Sent, Answer>>(given ?? {}, KNOWN);
  const { key = 'global', cost, timeout, settle, priority = 0, ageing = '1m' } = options;
  const check = (option: string, value: unknown, isValid: boolean, expected: string) => {
    if (!isValid) throw new RateLimitConfigError(messages.wrongOption(location, option, value, expected));
  };
  check(
    'key',
    key,
    isFunction(key) || (typeof key === 'string' && key !== ''),
    'a string that is not empty, or a function',
  );
  check('cost', cost, cost === undefined || isFunction(cost) || isCost(cost), 'a whole number >= 0, or a function');
  check('settle', settle, settle === undefined || isFunction(settle), 'a function');
  check('priority', priority, isFunction(priority) || Number.isFinite(priority), 'a number, or a function');
  const timeoutMs = timeout === undefined ? Infinity : milliseconds(timeout);
  check('timeout', timeout, timeoutMs !== undefined, DURATION);
  const ageingMs = milliseconds(ageing);
  check('ageing', ageing, ageingMs !== undefined, DURATION);
  const learning = readLearning(options, location);
  return { ...learning, location, key, cost, timeoutMs: timeoutMs!, settle, priority, ageingMs: ageingMs! };
}

type Learning = Pick<OutboundSettings<never, never>, 'parse' | 'readsBody' | 'maxLearnedWaitMs' | 'learn' | 'attempts'>;

function readLearning<Sent, Answer>(
  { learn = false, parser, maxLearnedWait = '1h', retry }: OutboundOptions<Sent, Answer>,
  location: string,
): Learning {
  const maxLearnedWaitMs = milliseconds(maxLearnedWait);
  if (maxLearnedWaitMs === undefined) {
    throw new RateLimitConfigError(messages.wrongOption(location, 'maxLearnedWait', maxLearnedWait, DURATION), {
      code: 'SLUICE_INVALID_DURATION',
    });
  }
  if (typeof learn !== 'boolean' && !isTextRecord(learn)) {
    const expected =
      "true, false, or the names of the upstream's limits by those of ours, such as { openai: 'tokens' }";
    throw new RateLimitConfigError(messages.wrongOption(location, 'learn', learn, expected));
  }
  return { ...readParser(parser, location), maxLearnedWaitMs, learn, attempts: readAttempts(retry, location) };
}

function readParser(parser: unknown, location: string): Pick<Learning, 'parse' | 'readsBody'> {
  if (parser === undefined) return { parse: parseUpstream, readsBody: false };
  if (typeof parser === 'function') return { parse: parser as UpstreamParser, readsBody: false };
  const known: Upstream | undefined =
    typeof parser === 'string' && Object.hasOwn(upstreams, parser) ? upstreams[parser as UpstreamName] : undefined;
  const { parse, readsBody = false } = known ?? ((isRecord(parser) ? parser : {}) as Partial<Upstream>);
  if (typeof parse === 'function' && typeof readsBody === 'boolean') return { parse, readsBody };
  const expected = `one of ${Object.keys(upstreams).join(', ')}, a function, or { parse, readsBody }`;
  throw new RateLimitConfigError(messages.wrongOption(location, 'parser', parser, expected));
}

function readAttempts(retry: unknown, location: string): number {
  if (retry === undefined) return 1;
  if (!isRecord(retry))
    throw new RateLimitConfigError(messages.wrongOption(location, 'retry', retry, 'an object such as { attempts: 3 }'));
  refuseUnknown(`${location}.retry`, retry, ['attempts']);
  return wholeNumber(`${location}.retry`, 'attempts', retry['attempts']);
}

function isTextRecord(value: unknown): boolean {
  return isRecord(value) && !Array.isArray(value) && Object.values(value).every((each) => typeof each === 'string');
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}
