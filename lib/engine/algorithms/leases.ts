/** Units held until they are released or expire. */
export interface Lease {
  readonly id: number;
  readonly units: number;
  /** The time at which they are free again, in microseconds. */
  readonly end: number;
}

/** A lease with its rank. Among leases that end at the same time, the one that was added first comes first. */
interface PlacedLease extends Lease {
  readonly order: number;
}

/** Consecutive leases, at least one. */
interface Block {
  leases: PlacedLease[];
  units: number;
}

/** The maximum number of leases in a block before it is split. */
const MAX_BLOCK = 256;

/**
 * Leases ordered by their end, in blocks. Adding, finding or releasing one, or counting those that have ended, takes about as long with a
 * hundred thousand leases as with a hundred.
 */
export class Leases {
  private blocks: Block[] = [];
  /** By identifier. Not used with a single block, which is searched instead. */
  private index: Map<number, PlacedLease> | undefined;
  private nextOrder = 0;
  /** The number of leases. */
  count = 0;
  /** The units of all of them. */
  units = 0;
  /** The longest time to live of any of them. */
  longest = 0;

  /** The time at which the last one ends. */
  get lastEnd(): number | undefined {
    return this.blocks.at(-1)?.leases.at(-1)!.end;
  }

  /** Adds a lease with this `ttl`. */
  add({ id, units, end }: Lease, ttl: number): void {
    const lease = { id, units, end, order: this.nextOrder++ };
    const number = this.blockOf(lease);
    const block = this.blocks[number] ?? this.append();
    if (block.leases.length === 0 || block.leases.at(-1)!.end <= end) block.leases.push(lease);
    else block.leases.splice(positionOf(block.leases, lease), 0, lease);
    block.units += units;
    this.count++;
    this.units += units;
    this.longest = Math.max(this.longest, ttl);
    this.index?.set(id, lease);
    if (block.leases.length > MAX_BLOCK) this.split(number);
  }

  /** The lease with this identifier and number of units. */
  find(id: number | undefined, units: number): Lease | undefined {
    // They may have been stored without an index.
    if (this.index === undefined && this.blocks.length > 1) this.makeIndex();
    const lease =
      this.index === undefined ? this.blocks[0]?.leases.find((each) => each.id === id) : this.index.get(id!);
    return lease?.units === units ? lease : undefined;
  }

  /** Removes a lease that is in the list. */
  remove(lease: Lease): void {
    const number = this.blockOf(lease as PlacedLease);
    const block = this.blocks[number]!;
    block.leases.splice(positionOf(block.leases, lease as PlacedLease), 1);
    block.units -= lease.units;
    this.count--;
    this.units -= lease.units;
    this.index?.delete(lease.id);
    if (block.leases.length === 0) this.blocks.splice(number, 1);
  }

  /** The number of leases that have ended at a time, and their units. */
  endedAt(now: number): { count: number; units: number } {
    const ended = { count: 0, units: 0 };
    for (const block of this.blocks) {
      if (block.leases[0]!.end > now) break;
      if (block.leases.at(-1)!.end <= now) {
        ended.count += block.leases.length;
        ended.units += block.units;
        continue;
      }
      for (const { end, units } of block.leases) {
        if (end > now) break;
        ended.count++;
        ended.units += units;
      }
    }
    return ended;
  }

  /** The leases that have not ended at a time, in the order in which they end. */
  running(now: number): Lease[] {
    return this.blocks.flatMap(({ leases }) => leases.filter(({ end }) => end > now));
  }

  /** Removes leases that have ended. */
  dropEnded(now: number): void {
    for (let first = this.blocks[0]; first !== undefined && first.leases[0]!.end <= now; first = this.blocks[0]) {
      let count = 0;
      for (const { id, end, units } of first.leases) {
        if (end > now) break;
        count++;
        first.units -= units;
        this.units -= units;
        this.index?.delete(id);
      }
      this.count -= count;
      if (count < first.leases.length) first.leases.splice(0, count);
      else this.blocks.shift();
    }
  }

  /** Makes all leases end at the same time. */
  endAllAt(end: number): void {
    for (const block of this.blocks) {
      block.leases = block.leases.map((lease) => {
        const migrated = { ...lease, end, order: this.nextOrder++ };
        this.index?.set(migrated.id, migrated);
        return migrated;
      });
    }
  }

  /**
   * The first lease with whose end this many units are free, starting at `position` in the order of their ends. It examines `most` leases;
   * beyond that, each further lease counts as one unit.
   */
  freeing(units: number, position: number, most: number): Lease {
    let missing = units;
    let left = this.units === this.count ? 0 : most;
    let target = position + units - 1;
    let before = 0;
    for (const { leases } of this.blocks) {
      for (let at = Math.max(0, position - before); left > 0 && at < leases.length; at++, left--) {
        missing -= leases[at]!.units;
        if (missing <= 0) return leases[at]!;
        target = before + at + missing;
      }
      if (left === 0 && target < before + leases.length) return leases[target - before]!;
      before += leases.length;
    }
    return this.blocks.at(-1)!.leases.at(-1)!;
  }

  /** The block of a lease that is stored or will be added; one past the end if the lease comes after all others. */
  private blockOf(lease: PlacedLease): number {
    const { blocks } = this;
    const last = blocks.length - 1;
    let low = 0;
    let high = last;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (comesBefore(blocks[middle]!.leases.at(-1)!, lease)) low = middle + 1;
      else high = middle;
    }
    // Leases that are added at the end fill blocks one after another.
    const isFull = low === last && blocks[low]!.leases.length >= MAX_BLOCK;
    return isFull && comesBefore(blocks[low]!.leases.at(-1)!, lease) ? low + 1 : low;
  }

  private append(): Block {
    const block = { leases: [], units: 0 };
    this.blocks.push(block);
    if (this.blocks.length > 1) this.makeIndex();
    return block;
  }

  private split(number: number): void {
    const block = this.blocks[number]!;
    const leases = block.leases.splice(MAX_BLOCK >>> 1);
    const units = leases.reduce((sum, lease) => sum + lease.units, 0);
    block.units -= units;
    this.blocks.splice(number + 1, 0, { leases, units });
    this.makeIndex();
  }

  private makeIndex(): void {
    this.index ??= new Map(this.blocks.flatMap(({ leases }) => leases).map((lease) => [lease.id, lease]));
  }
}

function comesBefore(a: PlacedLease, b: PlacedLease): boolean {
  return a.end < b.end || (a.end === b.end && a.order < b.order);
}

/** The position among others of a lease that is stored or will be added. */
function positionOf(leases: readonly PlacedLease[], lease: PlacedLease): number {
  let low = 0;
  let high = leases.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (comesBefore(leases[middle]!, lease)) low = middle + 1;
    else high = middle;
  }
  return low;
}
