import { compareUnits, convertUnits, isForgotten, type ReservedUnits } from './reserved-units.js';
import type { WaitingCall } from './waiting-call.js';

/** Calls of equal cost and their units. The first call uses the first units, even if another call reserved them. */
export class ReservedGroup {
  readonly calls = new Set<WaitingCall>();
  /** The units, earliest first. */
  private reserved: ReservedUnits[] = [];
  /** The calls that have left since the last `compact`, and the iterator over the next ones. */
  private released = 0;
  private inOrder: IterableIterator<WaitingCall> | undefined;

  get first(): ReservedUnits | undefined {
    return this.reserved[this.released];
  }

  get last(): ReservedUnits | undefined {
    return this.reserved.at(-1);
  }

  /** The number of units that its calls have. */
  get units(): number {
    return this.calls.size * (this.last?.units ?? 0);
  }

  /** True if the counter of some of the units was restarted. */
  get isForgotten(): boolean {
    return this.reserved.some(isForgotten);
  }

  /** True if some units were reserved under a limit that has been replaced. */
  get hasOtherLimit(): boolean {
    return this.reserved.some(({ limit, currentLimit }) => limit !== currentLimit());
  }

  add(units: ReservedUnits): void {
    let index = this.reserved.length;
    while (index > 0 && compareUnits(this.reserved[index - 1]!, units) > 0) index--;
    this.reserved.splice(index, 0, units);
  }

  /** Removes and returns the first call. Its units stay until `compact`, so that many can leave in one pass. */
  releaseFirst(): WaitingCall | undefined {
    this.inOrder ??= this.calls.values();
    const { value: call } = this.inOrder.next() as IteratorResult<WaitingCall, undefined>;
    if (call === undefined) return undefined;
    this.calls.delete(call);
    this.released++;
    return call;
  }

  /** Removes the units of released calls. */
  compact(): void {
    this.reserved.splice(0, this.released);
    this.released = 0;
    this.inOrder = undefined;
  }

  /** Removes and returns the units that exceed the number of calls, which are the last ones. */
  takeUnclaimed(): ReservedUnits[] {
    return this.reserved.splice(this.calls.size);
  }

  /** Converts the units to the current limits, and rejects calls whose units come too late. Returns converted units. */
  convert(now: number): ReservedUnits | undefined {
    const converted = convertUnits(this.reserved, now);
    this.reserved.sort(compareUnits);
    let index = 0;
    for (const call of this.calls) {
      const units = this.reserved[index];
      if (units !== undefined) call.postpone({ ...units, index: 0 }, units.usableAt - now);
      if (!call.isSettled) index++;
    }
    return converted;
  }

  /** All units, each with its call. */
  pairs(): { units: ReservedUnits; call: WaitingCall | undefined }[] {
    const calls = [...this.calls];
    return this.reserved.map((units, index) => ({ units, call: calls[index] }));
  }
}
