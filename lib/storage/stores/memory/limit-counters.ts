import type { Algorithm, State } from '../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { KeptEstimates } from '../../../engine/limits/estimates.js';
import { hashIdentity, LONGEST_IDENTITY } from '../../../engine/limits/identity.js';
import { flatCopy } from '../../../engine/util/bounded-maps.js';
import { Kept } from '../../../engine/util/recency-list.js';
import { SplitMap } from '../../../engine/util/split-map.js';
import type { Block } from './block.js';

/** A stored counter. */
export class Entry extends Kept {
  /** `undefined` if the counter is empty. */
  state: State | undefined;
  block: Block | undefined;
  /** Units that were reserved at an estimate; `undefined` if there never were any. */
  estimates: KeptEstimates | undefined;
  /** The quota that its units were carried over to. */
  carried: number | undefined;
  /** When the counter is empty again and may be removed, in microseconds. */
  expiresAt = 0;

  constructor(
    key: string,
    /** The counters of its limit, which list it. */
    public home: LimitCounters,
  ) {
    super(key);
  }
}

/** Makes the hash of an identity longer than any identity that is stored in plain text. */
const HASHED = '#'.repeat(LONGEST_IDENTITY);

/** The key of an identity among those of one limit. Its length is limited. */
export function keyOf(identity: string): string {
  return identity.length <= LONGEST_IDENTITY ? identity : HASHED + hashIdentity(identity);
}

/** The counters of one limit, or of several limits that share them, by identity. */
export class LimitCounters {
  /** True if a table lists it, which is the case while it has counters. */
  isListed = false;
  /** The number of counters. */
  size = 0;
  private spare: State | undefined;
  /** The last limit passed to `judge`, and the result. */
  private judged: CompiledLimit | undefined;
  private isSimple = false;
  private readonly entries = new SplitMap<Entry>();

  constructor(
    /** The id of the limit. */
    readonly id: string,
  ) {}

  /** Returns true if a few steps decide checks of a limit with these counters. `judge` determines that, once per limit. */
  areSimpleFor(limit: CompiledLimit, judge: (limit: CompiledLimit) => boolean): boolean {
    if (this.judged !== limit) {
      this.judged = limit;
      this.isSimple = judge(limit);
    }
    return this.isSimple;
  }

  get(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  /** Creates a counter without adding it. */
  make(key: string): Entry {
    return new Entry(flatCopy(key), this);
  }

  add(entry: Entry): void {
    entry.home = this;
    this.entries.set(entry.key, entry);
    this.size++;
  }

  delete({ key }: Entry): void {
    this.entries.delete(key);
    this.size--;
  }

  clear(): void {
    this.entries.clear();
    this.size = 0;
    this.isListed = false;
  }

  /** The current state of a counter. It overwrites a state that is no longer needed, if there is one. */
  open({ algorithm, parameters }: CompiledLimit, stored: State | undefined, now: number): State {
    const { spare } = this;
    if (spare === undefined || algorithm.reopen === undefined) return algorithm.open(parameters, stored, now);
    this.spare = undefined;
    algorithm.reopen(parameters, stored, now, spare);
    return spare;
  }

  /** Marks a state as no longer needed. */
  reuse(algorithm: Algorithm, state: State | undefined): void {
    if (algorithm.reopen !== undefined) this.spare = state;
  }

  values(): IterableIterator<Entry> {
    return this.entries.values();
  }
}
