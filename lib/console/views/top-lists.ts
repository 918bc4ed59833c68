import { consoleMessages } from '../../engine/errors/messages/console.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import type { Coverage, TopKey, TopKeys } from '../api.js';
import type { Command, ConsoleClock, ConsoleRedis } from '../telemetry/console-redis.js';
import { mergePublished, type PublishedLimits, readLimits } from '../telemetry/top-keys.js';
import { mergeFrequent, type Summary } from '../telemetry/space-saving.js';
import type { WatchedLimits } from '../telemetry/watched-limits.js';
import type { Instances } from './instances.js';

const SHOWN = 20;
/** A viewer renews its interest before this time is over. */
const WATCH_MS = 15_000;
const HEARD_MS = 60_000;
/** The number of values that an instance publishes per limit. */
const VALUES = 100;

interface PublishedByAll {
  readonly published: readonly PublishedLimits[];
  readonly coverage: Coverage;
  readonly problem?: string;
}

/** Maximum number of limits whose keys are read together. */
const MOST_WATCHED = 20;

/** The most active keys of all instances together. */
export class TopLists {
  constructor(
    private readonly limits: WatchedLimits,
    private readonly instances: Instances,
    private readonly clock: ConsoleClock,
    private readonly redis: ConsoleRedis | undefined,
    private readonly isPlain: boolean,
    private readonly observes: boolean,
  ) {}

  /** Makes all instances count the units of a limit's keys temporarily, and returns the counts. Never rejects because of Redis. */
  async of(label: string): Promise<TopKeys> {
    const now = this.clock.now();
    this.limits.watch(label, now + WATCH_MS);
    const { published: others, coverage, problem } = await this.read(this.watching(label, now));
    const merged = mergePublished([...this.own(label), ...others], label);
    return {
      limit: label,
      refused: this.listed(merged.refused, SHOWN, merged.identities),
      used: this.listed(merged.used, SHOWN, merged.identities),
      since: merged.since,
      usedSince: merged.usedSince,
      at: Math.round(now),
      coverage,
      problem,
    };
  }

  /** The keys that the other instances have published. Never rejects because of Redis. */
  async read(first: readonly Command[] = []): Promise<PublishedByAll> {
    try {
      return await this.readOthers(first);
    } catch (error) {
      // Some of the instances would look like all of them.
      const { coverage } = this.instances.alone();
      return { published: [], coverage, problem: consoleMessages.unreachable(reasonOf(error)) };
    }
  }

  /** The identity of a recently counted key by its hash; `undefined` if no instance knows it. Rejects with `RateLimitStoreError`. */
  async identityOf(label: string, id: string): Promise<string | undefined> {
    const own = mergePublished(this.own(label), label).identities.get(id);
    if (own !== undefined) return own;
    const { published } = await this.readOthers();
    return mergePublished(published, label).identities.get(id);
  }

  /**
   * The most used and most rejected keys of limits, as pairs of label and identity. Keys whose identities are not kept are left out. Their
   * units are counted temporarily from now on. Never rejects because of Redis.
   */
  async keysOf(labels: readonly string[]) {
    const now = this.clock.now();
    for (const label of labels) this.limits.watch(label, now + WATCH_MS);
    const watching = labels.slice(0, MOST_WATCHED).flatMap((label) => this.watching(label, now));
    const { published, coverage, problem } = await this.read(watching);
    const found: { label: string; identity: string; count: number }[] = [];
    let since: number | null = null;
    for (const label of labels) {
      const merged = mergePublished([...this.own(label), ...published], label);
      since = merged.since === null ? since : Math.min(since ?? merged.since, merged.since);
      for (const { key: id, count } of [
        ...mergeFrequent(merged.used, SHOWN),
        ...mergeFrequent(merged.refused, SHOWN),
      ]) {
        const identity = merged.identities.get(id);
        if (identity !== undefined) found.push({ label, identity, count });
      }
    }
    const keys = found
      .toSorted((one, other) => other.count - one.count)
      .map(({ label, identity }) => [label, identity] as const);
    return { keys, since, coverage, problem };
  }

  /** The keys that this instance knows. An observer counts nothing. */
  private own(label: string): PublishedLimits[] {
    return this.observes ? [] : [[this.limits.of(label)]];
  }

  private async readOthers(first: readonly Command[] = []): Promise<PublishedByAll> {
    const published: PublishedLimits[] = [];
    const begin = () => void (published.length = 0);
    if (this.redis !== undefined) await this.redis.run(first);
    const { coverage } = await this.instances.read(HEARD_MS, VALUES, publishedBy, begin, ({ reply }) => {
      const limits = typeof reply === 'string' ? readLimits(reply) : [];
      if (limits !== undefined) published.push(limits);
      return limits !== undefined;
    });
    return { published, coverage };
  }

  /** The most rejected keys of a limit, based on the keys that the other instances have published. */
  refusedOf(label: string, others: readonly PublishedLimits[], most: number): { keys: TopKey[]; since: number | null } {
    const { refused, since, identities } = mergePublished([...this.own(label), ...others], label);
    const keys = this.listed(refused, most, identities);
    return { keys, since: keys.length === 0 ? null : since };
  }

  /** Commands that make the other instances count the keys of a limit. */
  private watching(label: string, now: number): Command[] {
    const watched = this.redis?.keys.watched ?? '';
    return [
      ['zadd', watched, Math.round(now + WATCH_MS), label],
      ['zremrangebyscore', watched, '-inf', Math.round(now)],
      ['expire', watched, WATCH_MS / 1000],
    ];
  }

  private listed(summaries: readonly Summary[], most: number, identities: ReadonlyMap<string, string>): TopKey[] {
    return mergeFrequent(summaries, most).map(({ key: id, count, error }) => {
      return { id, identity: this.isPlain ? identities.get(id) : undefined, count, error };
    });
  }
}

function publishedBy(id: string, { keys }: ConsoleRedis): Command {
  return ['get', keys.top(id)];
}
