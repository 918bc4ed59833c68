import { pairsOf } from '../../storage/redis/errors.js';
import type { Coverage, InstanceInfo } from '../api.js';
import {
  type Command,
  type ConsoleClock,
  type ConsoleRedis,
  ENDED,
  LOST_AFTER_MS,
  LOST_SHOWN_MS,
  MOST_INSTANCES,
  timeOf,
} from '../telemetry/console-redis.js';
import { readInstance } from '../telemetry/reporter.js';
import type { Recorder } from '../telemetry/recorder.js';

/** The number of values to request per call. Requests of the app run between calls. */
const VALUES_PER_CALL = 1000;
/** How long instances may have been silent if Redis has just come back, since all of them were. */
const JUST_BACK_MS = 60_000;
/** The maximum number of attempts if counts of ended instances are added to their sum in the meantime. */
const ATTEMPTS = 3;

/** The data of another instance, or of the sum of ended ones. */
export interface ReadInstance {
  readonly id: string;
  readonly reply: unknown;
}

export interface FoundInstances {
  readonly running: InstanceInfo[];
  /** Instances that stopped reporting without announcing their end. */
  readonly lost: InstanceInfo[];
  readonly coverage: Coverage;
}

interface Indexed {
  readonly id: string;
  readonly state: 'running' | 'lost' | 'ended';
  readonly lastSeenAt: number;
}

/** Reads the data that the instances of the app have stored. */
export class Instances {
  /** The ids of the other instances that were running at the last read. */
  private known: string[] = [];

  constructor(
    private readonly recorder: Recorder,
    private readonly clock: ConsoleClock,
    private readonly redis: ConsoleRedis | undefined,
  ) {}

  get self(): InstanceInfo {
    return { ...this.recorder.published, self: true };
  }

  /** This instance alone: the others, if there are any, could not be read. */
  alone(): FoundInstances {
    return this.started([...this.known]);
  }

  /** This instance, to which others are added. */
  private started(unread: string[]): FoundInstances {
    const running = this.recorder.observes ? [] : [this.self];
    const instances = running.map(({ id }) => id);
    return { running, lost: [], coverage: { instances, ended: 0, unread } };
  }

  /**
   * Reads all other instances that reported within `withinMs`, a few at a time, each with the reply to one command, which may have up to
   * `values` values. `begin` is called before the first one, and again if everything has to be read again because counts of ended instances
   * were moved. Returns the ids of instances that `add` rejected. Rejects with `RateLimitStoreError`.
   */
  async read(
    withinMs: number,
    values: number,
    command: (id: string, redis: ConsoleRedis) => Command,
    begin: () => void,
    add: (one: ReadInstance) => boolean | Promise<boolean>,
  ): Promise<FoundInstances> {
    for (let attempt = 1; ; attempt++) {
      begin();
      const { found, isWhole } = await this.readOnce(withinMs, values, command, add);
      if (isWhole || attempt === ATTEMPTS) return found;
    }
  }

  private async readOnce(
    withinMs: number,
    values: number,
    command: (id: string, redis: ConsoleRedis) => Command,
    add: (one: ReadInstance) => boolean | Promise<boolean>,
  ): Promise<{ found: FoundInstances; isWhole: boolean }> {
    const { redis } = this;
    const found = this.started([]);
    const { running, lost, coverage } = found;
    if (redis === undefined) return { found, isWhole: true };
    const { keys } = redis;
    const { indexed, folds } = await this.indexed(redis, withinMs);
    const all = [...indexed, { id: ENDED, state: 'ended', lastSeenAt: 0 } as const];
    const perCall = Math.ceil(VALUES_PER_CALL / values);
    let last = folds;
    for (let at = 0; at < all.length; at += perCall) {
      const some = all.slice(at, at + perCall);
      const commands = some.flatMap(({ id, state }): Command[] => [
        ['get', state === 'lost' ? keys.about(id) : keys.instance(id)],
        command(id, redis),
      ]);
      const replies = await redis.read([...commands, ['get', keys.folds]]);
      last = replies.at(-1);
      for (const [index, { id, state, lastSeenAt }] of some.entries()) {
        const info = state === 'ended' ? undefined : readInstance(replies[2 * index]);
        if (info !== undefined) (state === 'lost' ? lost : running).push({ ...info, lastSeenAt, self: false });
        if (state === 'running') coverage.instances.push(id);
        else if (id !== ENDED) coverage.ended++;
        const isRead = await add({ id, reply: replies[2 * index + 1] });
        if (!isRead && id !== ENDED) coverage.unread.push(id);
      }
    }
    this.known = coverage.instances.filter((id) => id !== this.recorder.self.id);
    return { found: { running: inOrder(running), lost: inOrder(lost), coverage }, isWhole: last === folds };
  }

  /** The other instances, those with the newest reports first. */
  private async indexed(redis: ConsoleRedis, withinMs: number): Promise<{ indexed: Indexed[]; folds: unknown }> {
    const since = Math.round(this.clock.now() - withinMs);
    const range = ['+inf', since, 'WITHSCORES', 'LIMIT', 0, MOST_INSTANCES] as const;
    const { keys } = redis;
    const sentAt = performance.now();
    const [time, folds, ...found] = await redis.run([
      ['time'],
      ['get', keys.folds],
      ...[keys.reports, keys.endings, keys.seen].map((key): Command => ['zrevrangebyscore', key, ...range]),
    ]);
    this.clock.learn(timeOf(time), sentAt, performance.now());
    const now = this.clock.now();
    const [reports, endings, seen] = found.map(pairsOf);
    const indexed = new Map<string, Indexed>();
    const longest = this.recorder.isJustBack ? JUST_BACK_MS : LOST_AFTER_MS;
    const add = (id: string, at: string, state: Indexed['state']) => {
      if (id === this.recorder.self.id || id === ENDED || indexed.has(id)) return;
      indexed.set(id, { id, state, lastSeenAt: Number(at) });
    };
    for (const [id, at] of reports!) {
      const silentMs = now - Number(at);
      add(id, at, silentMs > longest ? (silentMs > LOST_SHOWN_MS ? 'ended' : 'lost') : 'running');
    }
    for (const [id, at] of endings!) add(id, at, 'ended');
    // Instances of the previous release are only in this index. It is unknown if they have announced their end.
    for (const [id, at] of seen!) add(id, at, now - Number(at) > longest ? 'ended' : 'running');
    return { indexed: [...indexed.values()].slice(0, MOST_INSTANCES), folds };
  }
}

/** Instances in the order in which they started. */
function inOrder(instances: readonly InstanceInfo[]): InstanceInfo[] {
  return instances.toSorted((one, other) => one.startedAt - other.startedAt || (one.id < other.id ? -1 : 1));
}
