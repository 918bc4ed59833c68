import { moduleLogger } from '../../../engine/errors/logger.js';
import { configError } from '../../../engine/errors/errors.js';
import { hashIdentity } from '../../../engine/limits/identity.js';
import type {
  FeaturedLimit,
  FeatureInMemory,
  FeatureInScript,
  LimitFeature,
  MemoryBounds,
} from '../../../engine/limits/limit-feature.js';
import { SLOTS, tagBeside } from '../../stores/redis/slots.js';
import { Bare } from '../../../engine/util/objects.js';
import { usageMessages } from './messages.js';
import { UsageRecords } from './records.js';
import { recordingOf, type UsageRecording, type UsageTerms } from './terms.js';

/** Marks in an index that keys were left out. No key is empty. */
export const LEFT_OUT = '';

/**
 * Maximum number of keys of a limit in the index of one slot: its share of all keys, with enough room that hardly any are left out, no
 * matter how they are spread over the slots. 0 for no maximum.
 */
function keysOfIndex(maxKeys: number | undefined): number {
  if (maxKeys === undefined) return 0;
  const mean = maxKeys / SLOTS;
  return Math.ceil(mean + 6 * Math.sqrt(mean) + 2);
}

/** The load of a record on the server: its day, and its place among the keys. */
const WORK = 9;

/** The records of one store. Each store in memory has its own. */
export const usageRecords = ({ maxKeys, maxBytes }: MemoryBounds) => new UsageRecords(maxKeys, maxBytes);

/** Records the units that one limit charges. */
export class LimitUsage extends Bare implements LimitFeature {
  readonly name = 'usage';
  readonly recording: UsageRecording;
  readonly recordId: string;
  readonly memory: FeatureInMemory<UsageRecords>;
  readonly script: FeatureInScript;
  private readonly limit: string;
  /** Identifies the limit in the keys of indexes. */
  private readonly hash: string;

  /** Throws `RateLimitConfigError` for limits whose units come back when the work ends, since those don't add up. */
  constructor({ name, recordId, algorithm }: FeaturedLimit, terms: UsageTerms, location: string) {
    super();
    if (algorithm.leases !== undefined || algorithm.adapting !== undefined) {
      throw configError('SLUICE_UNSUPPORTED_OPTION', usageMessages.notRecorded(location, algorithm.name));
    }
    this.limit = name;
    this.recordId = recordId;
    this.hash = hashIdentity(recordId);
    this.recording = recordingOf(terms);
    this.memory = {
      keep: usageRecords,
      charged: (records, identity, units, now) => records.charge(this, identity, units, now),
      corrected: (records, identity, correction, now) => records.correct(this, identity, correction, now),
    };
    this.script = {
      keys: 2,
      work: WORK,
      numbers: (now) => {
        const { days, keep, maxKeys } = this.recording;
        const { start, end } = days.windowAt(now);
        return [keep, start, end, keysOfIndex(maxKeys)];
      },
      beside: (prefix, tag) => ({
        keys: [this.recordKey(prefix, tag), this.indexKey(prefix, tagBeside(tag))],
        texts: [tag],
      }),
    };
  }

  /** How long records are kept. Units that lapse without a request are subtracted later. */
  get keepsFor(): number {
    return this.recording.keep;
  }

  /** The key of a counter's charges per day. It has the hash tag of the counter's key. */
  recordKey(prefix: string, tag: string): string {
    return `${prefix}:{${tag}}:${this.recordId}:usage`;
  }

  /**
   * The key of the sorted set with the keys of a slot that have a record. It is in the slot of its tag, and can't be a counter's key, since
   * those have two colons after the braces.
   */
  indexKey(prefix: string, tag: string): string {
    return `${prefix}:{${tag}}:usage-${this.hash}`;
  }

  /** Warns about keys without a record because the limit has too many keys: they are missing from invoices. */
  warnOfLeftOut(): void {
    moduleLogger.warn(usageMessages.leftOut(this.limit, this.recording.maxKeys ?? 0));
  }
}

/** The recording of a limit; `undefined` if it records nothing. */
export function limitUsageOf(limit: {
  readonly features: readonly LimitFeature[] | undefined;
}): LimitUsage | undefined {
  return limit.features?.find((feature): feature is LimitUsage => feature instanceof LimitUsage);
}
