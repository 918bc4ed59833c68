import { flatCopy } from '../../../engine/util/bounded-maps.js';
import { Kept, RecencyList } from '../../../engine/util/recency-list.js';
import { SplitMap } from '../../../engine/util/split-map.js';
import type { Block } from './block.js';
import type { Entry } from './limit-counters.js';

/** The bytes of a block without its counter and its key. */
const BAN_BYTES = 300;
const CHARACTER_BYTES = 2;
/** The share of all memory that bans may take. */
const SHARE = 0.25;

/** A block of an evicted counter. */
class Ban extends Kept {
  constructor(
    key: string,
    readonly block: Block,
    /** When it no longer matters, in microseconds. */
    readonly expiresAt: number,
  ) {
    super(key);
  }
}

/**
 * The blocks and offences of evicted counters. They have their own maximum, so that a flood of identities that earn a block can't lift the
 * blocks of others. Beyond the maximum, the oldest are evicted first, and blocks set by a call last.
 */
export class Bans {
  private readonly order: RecencyList<Ban>;
  private readonly bans = new SplitMap<Ban>();
  private sweeping: Iterator<Ban> | undefined;

  constructor(maxBans: number, maxBytes: number) {
    this.order = new RecencyList(maxBans, maxBytes * SHARE, ({ key }) => this.bans.delete(key));
  }

  get size(): number {
    return this.order.size;
  }

  get bytes(): number {
    return this.order.bytes;
  }

  /** The block of a counter that is not in the table. */
  of(limit: string, key: string): Block | undefined {
    return this.bans.get(idOf(limit, key))?.block;
  }

  /** Keeps the block of a counter that is evicted. */
  keep({ key, home, block, expiresAt }: Entry, now: number): void {
    if (block === undefined) return;
    const end = block.offences > 0 ? expiresAt : block.until;
    if (end <= now) return;
    const ban = new Ban(flatCopy(idOf(home.id, key)), block, end);
    this.bans.set(ban.key, ban);
    this.order.put(ban, BAN_BYTES + CHARACTER_BYTES * ban.key.length, block.isByHand === true);
  }

  /** Removes the ban of a counter that has its own block again, or no block any more. */
  forget(limit: string, key: string): void {
    const ban = this.bans.get(idOf(limit, key));
    if (ban !== undefined) this.delete(ban);
  }

  /** Examines `looks` bans, and removes those that are over. */
  sweep(now: number, looks: number): void {
    for (let looked = 0; looked < looks; looked++) {
      this.sweeping ??= this.bans.values();
      const { done, value } = this.sweeping.next();
      if (done === true) {
        this.sweeping = undefined;
        return;
      }
      if (value.expiresAt <= now) this.delete(value);
    }
  }

  clear(): void {
    this.bans.clear();
    this.order.clear();
    this.sweeping = undefined;
  }

  private delete(ban: Ban): void {
    if (this.order.remove(ban)) this.bans.delete(ban.key);
  }
}

function idOf(limit: string, key: string): string {
  return `${limit}\n${key}`;
}
