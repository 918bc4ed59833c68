import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { throttlerStorageMessages } from '../../engine/errors/messages/throttler-storage.js';
import type { Counter } from '../../engine/limits/counter.js';
import { plainIdentity } from '../../engine/limits/identity.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { RedisStore, type RedisStoreOptions } from '../../storage/stores/redis/redis.store.js';
import type { Connection } from '../../storage/redis/connection.js';
import { HITS_SCRIPT } from './hits-script.generated.js';
import { recordOf, type HitTerms, type ThrottlerRecord } from './throttler-record.js';

/** A key that expires at once would be gone before a server that stalls has counted. */
const SLACK_MS = 1000;

/** Counts hits on Redis. Its connection, deadline and slots are those of the store for limits; its script is its own. */
export class RedisHits extends RedisStore {
  private readonly lead: string;
  private readonly time: RedisStoreOptions['clock'];

  constructor(connection: Connection, options: RedisStoreOptions & { readonly prefix: string }) {
    super(connection, { ...options, script: HITS_SCRIPT });
    this.lead = options.prefix;
    this.time = options.clock;
  }

  /** Counts a hit on a counter. Rejects with `RateLimitStoreError`. */
  async increment(counter: Counter, name: string, { ttl, limit, block }: HitTerms): Promise<ThrottlerRecord> {
    const { calls, slots, time, timeoutMs } = this;
    // No namespace of limits contains an equals sign.
    const key = `${this.lead}:{${plainIdentity(counter.identity)}}:throttler=${plainIdentity(name)}`;
    const now = time === undefined ? 0 : Math.floor(time.now() / 1000);
    const args = [ttl, limit, block, time?.slackMs ?? SLACK_MS, now].map(String);
    const node = slots?.nodeOf(counter);
    try {
      return read(await withDeadline(calls.run({ keys: [key], args: () => args }, node), timeoutMs));
    } catch (error) {
      // Only a call without an answer rejects with such an error.
      if (error instanceof RateLimitStoreError) calls.noteSilence();
      const failure = calls.failure(error, node);
      throw node === undefined || slots === undefined ? failure : slots.blame(node, failure, counter);
    }
  }
}

function read(reply: unknown): ThrottlerRecord {
  const numbers = Array.isArray(reply) ? reply.map(Number) : [];
  const [hits, windowMs, isBlocked, blockMs] = numbers;
  if (numbers.length !== 4 || numbers.some((each) => !Number.isSafeInteger(each))) {
    throw new RateLimitStoreError(throttlerStorageMessages.wrongReply(reply));
  }
  return recordOf(hits!, windowMs!, isBlocked === 1, blockMs!);
}
