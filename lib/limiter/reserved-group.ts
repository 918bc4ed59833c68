import { compareUnits, convertUnits, isForgotten, type ReservedUnits } from './reserved-units.js';
import type { Waiter } from './waiter.js';

/** Waiters of equal cost and their units: the first waiter gets the first units, whichever call reserved them. */
export class ReservedGroup {
  readonly waiters = new Set<Waiter>();
  /** The earliest first. */
  private reserved: ReservedUnits[] = [];
  /** Waiters that left since the last `compact`, and the iterator that gives the next one. */
  private released = 0;
  private inOrder: IterableIterator<Waiter> | undefined;

  get first(): ReservedUnits | undefined {
    return this.reserved[this.released];
  }

  get last(): ReservedUnits | undefined {
    return this.reserved.at(-1);
  }

  /** How many units its waiters have. */
  get units(): number {
    return this.waiters.size * (this.last?.units ?? 0);
  }

  /** Whether the counter of some units began anew. */
  get isForgotten(): boolean {
    return this.reserved.some(isForgotten);
  }

  /** Whether some units are by another limit than the one in force now. */
  get hasOtherLimit(): boolean {
    return this.reserved.some(({ limit, currentLimit }) => limit !== currentLimit());
  }

  add(units: ReservedUnits): void {
    let index = this.reserved.length;
    while (index > 0 && compareUnits(this.reserved[index - 1]!, units) > 0) index--;
    this.reserved.splice(index, 0, units);
  }

  /** Takes out the first waiter. Its units stay until `compact`, so that many can leave in one pass. */
  releaseFirst(): Waiter | undefined {
    this.inOrder ??= this.waiters.values();
    const { value: waiter } = this.inOrder.next() as IteratorResult<Waiter, undefined>;
    if (waiter === undefined) return undefined;
    this.waiters.delete(waiter);
    this.released++;
    return waiter;
  }

  /** Removes the units of released waiters. */
  compact(): void {
    this.reserved.splice(0, this.released);
    this.released = 0;
    this.inOrder = undefined;
  }

  /** Takes out the units that are more than the waiters: the last ones. */
  takeUnclaimed(): ReservedUnits[] {
    return this.reserved.splice(this.waiters.size);
  }

  /** Converts the units to the limits in force now, and rejects waiters whose units come too late. Returns converted units. */
  convert(now: number): ReservedUnits | undefined {
    const converted = convertUnits(this.reserved, now);
    this.reserved.sort(compareUnits);
    let index = 0;
    for (const waiter of this.waiters) {
      const units = this.reserved[index];
      if (units !== undefined) waiter.postpone(units.decision, units.usableAt - now);
      if (!waiter.isSettled) index++;
    }
    return converted;
  }

  /** All units, each with its waiter. */
  pairs(): { units: ReservedUnits; waiter: Waiter | undefined }[] {
    const waiters = [...this.waiters];
    return this.reserved.map((units, index) => ({ units, waiter: waiters[index] }));
  }
}
