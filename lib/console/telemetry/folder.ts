import { Script } from '../../storage/redis/script.js';
import { addBucket, emptyBucket, readBucket, writeBucket } from './bucket.js';
import { type ConsoleClock, type ConsoleRedis, ENDED, FOLD_AFTER_MS, LOST_SHOWN_MS } from './console-redis.js';
import { FOLD_SCRIPT } from './fold-script.generated.js';
import { RESOLUTIONS, type Resolution } from './timeline.js';

/** The number of steps to add per call. Requests of the app run between calls. */
const STEPS_PER_CALL = 40;
/** The number of instances to add per turn. */
const PER_TURN = 5;
/** With more lost instances than this, those that were lost first are added early. */
const MOST_LOST = 50;

/** An ended instance in an index. */
interface Ended {
  readonly id: string;
  /** When it last reported, as stored on Redis. */
  readonly score: string;
  readonly index: 'endings' | 'reports';
}

/**
 * Adds the counts of ended instances to one sum, so that the number of hashes to read doesn't grow with each deployment. A script moves
 * each step to the sum only if the instance has not reported in the meantime and no other instance has changed the sum. So each count is in
 * exactly one of them.
 */
export class Folder {
  private readonly script: Script;

  constructor(
    private readonly redis: ConsoleRedis,
    private readonly clock: ConsoleClock,
    private readonly timeoutMs: number,
  ) {
    this.script = new Script(redis.client, FOLD_SCRIPT);
  }

  /** Adds some ended instances. Returns how many. Rejects with `RateLimitStoreError`. */
  async turn(self: string): Promise<number> {
    let folded = 0;
    for (const each of await this.ended()) if (each.id !== self && (await this.fold(each))) folded++;
    return folded;
  }

  private async ended(): Promise<Ended[]> {
    const { keys } = this.redis;
    const now = Math.round(this.clock.now());
    const [endings, reports] = (await this.redis.run([
      ['zrangebyscore', keys.endings, '-inf', now - FOLD_AFTER_MS, 'WITHSCORES', 'LIMIT', 0, PER_TURN],
      ['zrangebyscore', keys.reports, '-inf', now - 2 * FOLD_AFTER_MS, 'WITHSCORES', 'LIMIT', 0, MOST_LOST + PER_TURN],
    ])) as [string[], string[]];
    const lost = scored(reports, 'reports');
    const old = lost.filter(({ score }, at) => Number(score) < now - LOST_SHOWN_MS || at < lost.length - MOST_LOST);
    return [...scored(endings, 'endings'), ...old].slice(0, PER_TURN);
  }

  /** Returns true if all of it was added, by this instance or another one at the same time. */
  private async fold(ended: Ended): Promise<boolean> {
    const { keys } = this.redis;
    for (const resolution of RESOLUTIONS) if (!(await this.foldSteps(ended, resolution))) return false;
    const [read] = await this.redis.run([['get', keys.folds]]);
    const hashes = RESOLUTIONS.map(({ stepMs }) => keys.counts(ended.id, stepMs));
    return this.commit(ended, versionOf(read), keys.counts(ENDED, 1000), hashes, ['end']);
  }

  private async foldSteps(ended: Ended, { stepMs, steps }: Resolution): Promise<boolean> {
    const { keys } = this.redis;
    const source = keys.counts(ended.id, stepMs);
    const sum = keys.counts(ENDED, stepMs);
    const from = this.clock.now() - (steps + 1) * stepMs;
    // Read in this order, so that additions by another instance from now on change the version.
    const [read, held] = await this.redis.read([
      ['get', keys.folds],
      ['hgetall', source],
    ]);
    let version = versionOf(read);
    const found = Object.entries((held ?? {}) as Record<string, string>).filter(([step]) => Number(step) >= from);
    let old = stepsBefore(from, steps + 6, stepMs);
    for (let at = 0; at < found.length; at += STEPS_PER_CALL) {
      const some = found.slice(at, at + STEPS_PER_CALL);
      const [before] = await this.redis.run([['hmget', sum, ...some.map(([step]) => step)]]);
      const merged = some.flatMap(([step, text], index) => [step, sumOf(text, (before as (string | null)[])[index]!)]);
      const args = [String(Math.ceil((stepMs / 1000) * (steps + 4))), String(old.length), ...old, ...merged];
      if (!(await this.commit(ended, version, sum, [source], args))) return false;
      version++;
      old = [];
    }
    return true;
  }

  private async commit(
    { id, score, index }: Ended,
    version: number,
    sum: string,
    hashes: readonly string[],
    args: readonly string[],
  ): Promise<boolean> {
    const { keys } = this.redis;
    const all = [keys[index], keys.seen, keys.folds, keys.folded(id), sum, ...hashes];
    return (await this.script.run(all, [id, score, String(version), ENDED, ...args], this.timeoutMs)) === 1;
  }
}

function scored(reply: readonly string[], index: Ended['index']): Ended[] {
  const found: Ended[] = [];
  for (let at = 0; at + 1 < reply.length; at += 2) found.push({ id: reply[at]!, score: reply[at + 1]!, index });
  return found;
}

function versionOf(reply: unknown): number {
  return Number(reply ?? 0);
}

/** Counts that can't be read, for example from another release, add nothing. */
function sumOf(text: string, before: string | null): string {
  const sum = emptyBucket();
  for (const each of [before, text]) {
    const bucket = each === null ? undefined : readBucket(each);
    if (bucket !== undefined) addBucket(sum, bucket);
  }
  return writeBucket(sum);
}

/** The last steps before a time. */
function stepsBefore(time: number, steps: number, stepMs: number): string[] {
  const last = Math.ceil(time / stepMs) * stepMs - stepMs;
  return Array.from({ length: steps }, (_, index) => String(last - index * stepMs));
}
