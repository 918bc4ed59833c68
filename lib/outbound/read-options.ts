import { givenOptions, milliseconds } from '../algorithms/options.js';
import { isRecord } from '../config/option-checks.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { OutboundOptions } from './outbound-options.js';

/** Options as they were checked, with their defaults. */
export interface OutboundSettings<Sent, Answer> {
  /** Where they were given, for messages. */
  readonly location: string;
  readonly key: NonNullable<OutboundOptions<Sent, Answer>['key']>;
  readonly cost: OutboundOptions<Sent, Answer>['cost'];
  readonly timeoutMs: number;
  readonly settle: OutboundOptions<Sent, Answer>['settle'];
  readonly priority: NonNullable<OutboundOptions<Sent, Answer>['priority']>;
  readonly ageingMs: number;
}

const KNOWN = ['key', 'cost', 'timeout', 'settle', 'priority', 'ageing'] as const;
const DURATION = "milliseconds or a duration such as '250ms', '10s', '1m', at most 1 year";

/** Reads the options of calls. Throws `RateLimitConfigError`. */
export function readOptions<Sent, Answer>(given: unknown, location: string): OutboundSettings<Sent, Answer> {
  if (given !== undefined && (!isRecord(given) || Array.isArray(given))) {
    throw new RateLimitConfigError(messages.notOptions(location, given));
  }
  for (const option of Object.keys(given ?? {})) {
    if ((KNOWN as readonly string[]).includes(option)) continue;
    throw new RateLimitConfigError(messages.unknownOption(location, option, KNOWN));
  }
  const options = givenOptions<OutboundOptions<Sent, Answer>>(given ?? {}, KNOWN);
  const { key = 'global', cost, timeout, settle, priority = 0, ageing = '1m' } = options;
  const check = (option: string, value: unknown, isRight: boolean, wants: string) => {
    if (!isRight) throw new RateLimitConfigError(messages.wrongOption(location, option, value, wants));
  };
  check(
    'key',
    key,
    isFunction(key) || (typeof key === 'string' && key !== ''),
    'a string that is not empty, or a function',
  );
  const isCost = cost === undefined || isFunction(cost) || (Number.isSafeInteger(cost) && (cost as number) >= 1);
  check('cost', cost, isCost, 'a whole number >= 1, or a function');
  check('settle', settle, settle === undefined || isFunction(settle), 'a function');
  check('priority', priority, isFunction(priority) || Number.isFinite(priority), 'a number, or a function');
  const timeoutMs = timeout === undefined ? Infinity : milliseconds(timeout);
  check('timeout', timeout, timeoutMs !== undefined, DURATION);
  const ageingMs = milliseconds(ageing);
  check('ageing', ageing, ageingMs !== undefined, DURATION);
  return { location, key, cost, timeoutMs: timeoutMs!, settle, priority, ageingMs: ageingMs! };
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}
