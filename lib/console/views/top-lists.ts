import { consoleMessages } from '../../errors/messages/console.js';
import { reasonOf } from '../../util/reason-of.js';
import type { TopKey, TopKeys } from '../api.js';
import type { ConsoleClock } from '../telemetry/console-clock.js';
import type { Command, ConsoleRedis } from '../telemetry/console-redis.js';
import { type Frequent, mergeFrequent, type Summary } from '../telemetry/space-saving.js';
import { mergePublished, type PublishedLimits, type WatchedLimits } from '../telemetry/watched-limits.js';
import type { Instances } from './instances.js';

/** Keys of each list. */
const SHOWN = 20;
/** A viewer renews its interest before this is over. */
const WATCH_MS = 15_000;
const HEARD_MS = 60_000;
/** The keys that an instance publishes for one limit. */
const VALUES = 100;

/** The most active keys of all instances together. */
export class TopLists {
  constructor(
    private readonly limits: WatchedLimits,
    private readonly instances: Instances,
    private readonly clock: ConsoleClock,
    private readonly redis: ConsoleRedis | undefined,
    private readonly isPlain: boolean,
  ) {}

  /** Makes all instances count the keys of a limit for a while, and returns their counts. Never rejects because of Redis. */
  async of(label: string): Promise<TopKeys> {
    const now = this.clock.now();
    this.limits.watch(label, now + WATCH_MS);
    const { published: others, problem } = await this.others(label, now);
    const { refused, used, since, identities } = mergePublished([this.limits.published(), ...others], label);
    const listed = (summaries: readonly Summary[]) =>
      mergeFrequent(summaries, SHOWN).map((key) => this.shown(key, identities));
    return {
      limit: label,
      refused: listed(refused),
      used: listed(used),
      since: since === null ? null : Math.round(since),
      ...(problem !== undefined && { problem }),
    };
  }

  /** The identity of a key that was counted lately, by its hash; `undefined` if no instance knows it. Rejects with `RateLimitStoreError`. */
  async identityOf(label: string, id: string): Promise<string | undefined> {
    const own = mergePublished([this.limits.published()], label).identities.get(id);
    if (own !== undefined) return own;
    for await (const published of this.publishedByOthers()) {
      const known = mergePublished([published], label).identities.get(id);
      if (known !== undefined) return known;
    }
    return undefined;
  }

  private async others(label: string, now: number): Promise<{ published: PublishedLimits[]; problem?: string }> {
    const { redis } = this;
    if (redis === undefined) return { published: [] };
    const { watched } = redis.keys;
    try {
      const commands: Command[] = [
        ['zadd', watched, Math.round(now + WATCH_MS), label],
        ['zremrangebyscore', watched, '-inf', Math.round(now)],
        ['expire', watched, WATCH_MS / 1000],
      ];
      await redis.run(commands);
      const published: PublishedLimits[] = [];
      for await (const each of this.publishedByOthers()) published.push(each);
      return { published };
    } catch (error) {
      // Part of the instances would look like all of them.
      return { published: [], problem: consoleMessages.unreachable(reasonOf(error)) };
    }
  }

  private async *publishedByOthers(): AsyncIterable<PublishedLimits> {
    for await (const { reply } of this.instances.others(HEARD_MS, VALUES, (id, { keys }) => ['get', keys.top(id)])) {
      yield* readLimits(reply) ?? [];
    }
  }

  private shown({ key: id, count, error }: Frequent, identities: ReadonlyMap<string, string>): TopKey {
    const identity = this.isPlain ? identities.get(id) : undefined;
    return { id, ...(identity !== undefined && { identity }), count, error };
  }
}

/** Reads what another instance wrote; `undefined` if it is malformed, such as that of another release. */
function readLimits(reply: unknown): [PublishedLimits] | undefined {
  try {
    const published = JSON.parse(String(reply)) as unknown;
    return Array.isArray(published) && published.every(isLimit) ? [published as PublishedLimits] : undefined;
  } catch {
    return undefined;
  }
}

function isLimit(limit: unknown): boolean {
  if (!Array.isArray(limit)) return false;
  const [label, since, refused, refusedFloor, used, usedFloor] = limit as unknown[];
  const areNumbers = [since, refusedFloor, usedFloor].every((each) => Number.isFinite(each));
  return typeof label === 'string' && areNumbers && [refused, used].every(areKeys);
}

function areKeys(keys: unknown): boolean {
  return Array.isArray(keys) && keys.every(isKey);
}

function isKey(key: unknown): boolean {
  if (!Array.isArray(key)) return false;
  const [id, count, error, identity] = key as unknown[];
  const areNumbers = Number.isFinite(count) && Number.isFinite(error);
  return typeof id === 'string' && areNumbers && (identity === undefined || typeof identity === 'string');
}
