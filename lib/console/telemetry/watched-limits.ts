import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { Tally } from './tally.js';
import { namesOf, type PublishedKeys, TopKeyCounts } from './top-keys.js';
import type { Frequent, Summary } from './space-saving.js';

/** The most limits whose keys are counted at the same time. */
const MOST_WATCHED = 50;

/** A key as instances publish it: hash, count, error, and the identity if it was kept, which consoles with hashed identities do not show. */
type PublishedKey = readonly [id: string, count: number, error: number, identity?: string];

/** What an instance publishes about the keys of its limits. */
export type PublishedLimits = readonly (readonly [
  label: string,
  since: number,
  refused: readonly PublishedKey[],
  refusedFloor: number,
  used: readonly PublishedKey[],
  usedFloor: number,
])[];

/** Counts the keys of the limits that somebody views, or of all. */
export class WatchedLimits {
  readonly tally: Tally;
  private readonly counts = new Map<string, TopKeyCounts>();
  /** When viewing ends, by label. */
  private watched = new Map<string, number>();

  /**
   * @param always whether the keys of all limits are counted
   */
  constructor(
    labelOf: (limit: CompiledLimit) => string | undefined,
    private readonly always: boolean,
    private readonly now: () => number,
  ) {
    this.tally = new Tally(labelOf, (label) => this.keysOf(label));
  }

  /** Whether keys are counted. */
  get isCounting(): boolean {
    return this.counts.size > 0;
  }

  /** Notes that somebody views the keys of a limit until then. */
  watch(label: string, until: number): void {
    this.watched.set(label, Math.max(until, this.watched.get(label) ?? 0));
    this.turn();
  }

  /** Called once a second: stops counting what nobody views any more. */
  turn(): void {
    const now = this.now();
    this.watched = new Map([...this.watched].filter(([, until]) => until > now).slice(0, MOST_WATCHED));
    if (!this.always) {
      for (const label of this.counts.keys()) if (!this.watched.has(label)) this.counts.delete(label);
      for (const label of this.watched.keys())
        if (!this.counts.has(label)) this.counts.set(label, new TopKeyCounts(now));
    }
    for (const counts of this.counts.values()) counts.turn(now);
    this.tally.watch();
  }

  /** What is published to the other instances. */
  published(): PublishedLimits {
    return [...this.counts].map(([label, counts]) => {
      const { refused, used, since } = counts.published();
      return [label, since, this.named(refused), refused.floor, this.named(used), used.floor];
    });
  }

  private named({ frequent }: Summary): PublishedKey[] {
    return frequent.map(({ key, count, error }) => {
      const { id, identity } = namesOf(key);
      return identity === undefined ? [id, count, error] : [id, count, error, identity];
    });
  }

  private keysOf(label: string): TopKeyCounts | undefined {
    let counts = this.counts.get(label);
    if (counts === undefined && this.always && this.counts.size < MOST_WATCHED) {
      this.counts.set(label, (counts = new TopKeyCounts(this.now())));
    }
    return counts;
  }
}

/** Merges what instances have published about one limit, with any identities. */
export function mergePublished(published: readonly PublishedLimits[], label: string) {
  const identities = new Map<string, string>();
  const read = (keys: readonly PublishedKey[]): Frequent[] =>
    keys.map(([id, count, error, identity]) => {
      if (identity !== undefined) identities.set(id, identity);
      return { key: id, count, error };
    });
  const refused: Summary[] = [];
  const used: Summary[] = [];
  let since: number | null = null;
  for (const limits of published) {
    for (const [name, begun, refusedKeys, refusedFloor, usedKeys, usedFloor] of limits) {
      if (name !== label) continue;
      refused.push({ frequent: read(refusedKeys), floor: refusedFloor });
      used.push({ frequent: read(usedKeys), floor: usedFloor });
      since = Math.min(since ?? begun, begun);
    }
  }
  return { refused, used, since, identities };
}

export type { PublishedKeys };
