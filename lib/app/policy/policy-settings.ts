import { duration, refuseUnknown, wrongOption } from '../../engine/options/check-options.js';
import { givenOptions, orElse } from '../../engine/options/values.js';
import type { PolicyOptions } from '../config/policy.js';
import { configError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import { FilePolicySource, FunctionPolicySource, type PolicySource } from './sources.js';
import { isPolicyPath } from './read-text.js';

const LOCATION = 'RateLimitModule.policy';
const KNOWN: readonly (keyof PolicyOptions)[] = ['source', 'watch', 'every', 'timeout'];
const SHORTEST_EVERY_MS = 10;
const LONGEST_EVERY_MS = 86_400_000;
const LONGEST_TIMEOUT_MS = 3_600_000;

/** The option `policy` after reading and checking. */
export interface PolicySettings {
  readonly source: PolicySource;
  /** The time between two checks, in milliseconds; `undefined` if the source is read once. */
  readonly everyMs: number | undefined;
}

/** Reads the option `policy`. Throws `RateLimitConfigError`. */
export function readPolicySettings(written: PolicyOptions): PolicySettings {
  refuseUnknown(LOCATION, written, KNOWN);
  const options = givenOptions(written, KNOWN);
  const { source: from, every } = options;
  const watch: unknown = orElse(options.watch, false);
  if (typeof watch !== 'boolean') throw wrongOption(LOCATION, 'watch', watch, 'true or false');
  const timeoutMs = duration(LOCATION, 'timeout', orElse(options.timeout, '10s')) / 1000;
  if (timeoutMs > LONGEST_TIMEOUT_MS)
    throw wrongOption(LOCATION, 'timeout', options.timeout, policyMessages.timeoutExpected());
  const source = sourceOf(from, timeoutMs);
  if (every !== undefined && !watch)
    throw configError('SLUICE_MISSING_OPTION', policyMessages.everyWithoutWatch(every));
  const everyMs = every === undefined ? source.everyMs : duration(LOCATION, 'every', every) / 1000;
  if (everyMs < SHORTEST_EVERY_MS || everyMs > LONGEST_EVERY_MS) {
    throw wrongOption(LOCATION, 'every', every, policyMessages.everyExpected());
  }
  return { source, everyMs: watch ? everyMs : undefined };
}

function sourceOf(source: unknown, timeoutMs: number): PolicySource {
  if (typeof source === 'function') return new FunctionPolicySource(source as never, timeoutMs);
  if (typeof source === 'string' && isPolicyPath(source)) return new FilePolicySource(source);
  if (source === undefined) {
    throw configError(
      'SLUICE_MISSING_OPTION',
      messages.missingOption(LOCATION, 'source', policyMessages.sourceExpected()),
    );
  }
  throw wrongOption(LOCATION, 'source', source, policyMessages.sourceExpected());
}
