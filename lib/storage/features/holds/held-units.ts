import type { HeldUnits } from '../../../engine/algorithms/capabilities.js';
import type { KeptEstimates } from '../../../engine/limits/estimates.js';
import { KEPT_CLASSES } from '../../../engine/algorithms/algorithm.js';

/** Units that are held until they are settled. */
export interface Hold {
  readonly id: number;
  readonly units: number;
  /** The `windows` of the limit under which they were reserved. */
  readonly windows: number;
  readonly releases: boolean;
  /** When they were reserved, and when the hold lapses, in microseconds. */
  readonly chargedAt: number;
  readonly end: number;
}

/** The maximum number of lapsed holds to release in one step, and of holds to examine for a wait, as in the script. */
export const MOST_AT_ONCE = 1024;
/** The maximum number of holds to examine for a wait if the limit charges lapsed holds. */
export const MOST_WHERE_CHARGED = 256;
/** The maximum number of lapsed holds that a counter keeps so that they can still be settled; the oldest are evicted first. */
const MOST_LAPSED = 1000;
const NONE: readonly Hold[] = [];
/** The measured bytes of a hold. */
const HOLD_BYTES = 200;

/** The holds of one counter, ordered by when they lapse. The script keeps the same in a separate key. */
export class Holds implements HeldUnits, KeptEstimates {
  /** Holds whose units are charged. */
  private charged: Hold[] = [];
  /** Holds that were examined after they had lapsed. Their units were returned, if the limit returns them. */
  private released: Hold[] = [];
  /** Lapsed holds whose units are no longer in the state of the open counter, the oldest first. */
  lapsed: readonly Hold[] = NONE;
  until = 0;

  get haveLapsed(): boolean {
    return this.lapsed.length > 0;
  }

  get isEmpty(): boolean {
    return this.charged.length + this.released.length === 0;
  }

  get bytes(): number {
    return HOLD_BYTES * (this.charged.length + this.released.length);
  }

  /** Returns true if the holds belong to these windows. All holds of a counter belong to the same windows. */
  areOf(windows: number): boolean {
    const [first = this.released[0]] = this.charged;
    return first === undefined || first.windows === windows;
  }

  /** `releases` is true if units of lapsed holds are returned: until then the holds are kept. */
  add(hold: Hold, now: number, until: number, releases: boolean): void {
    insert(this.charged, hold);
    this.until = Math.max(this.until, until);
    const lapsed = releases ? 0 : firstAfter(this.charged, now);
    let excess = this.released.length + lapsed - MOST_LAPSED;
    if (excess <= 0) return;
    excess -= this.released.splice(0, excess).length;
    this.charged.splice(0, excess);
  }

  find(id: number, units: number, chargedAt: number, windows: number): { hold: Hold; isReleased: boolean } | undefined {
    const isIt = (hold: Hold) =>
      hold.id === id && hold.units === units && hold.chargedAt === chargedAt && hold.windows === windows;
    const hold = this.charged.find(isIt);
    if (hold !== undefined) return { hold, isReleased: false };
    const released = this.released.find(isIt);
    return released && { hold: released, isReleased: true };
  }

  remove(hold: Hold): void {
    if (!take(this.charged, hold)) take(this.released, hold);
  }

  /** Finds the holds that have lapsed by now. */
  look(now: number, most: number): void {
    const count = Math.min(firstAfter(this.charged, now), most);
    this.lapsed = count === 0 ? NONE : this.charged.slice(0, count);
  }

  /** Holds that have not lapsed yet, in the order in which they will. */
  running(now: number, most: number): Hold[] {
    const first = firstAfter(this.charged, now);
    return this.charged.slice(first, first + most);
  }

  /** The units that were charged in a window, have not been returned yet, and come back before it ends. */
  unitsWithin({ start, end }: { readonly start: number; readonly end: number }, windows: number): number {
    let sum = 0;
    for (const hold of this.charged) {
      if (hold.end >= end) break;
      if (hold.releases && hold.windows === windows && hold.chargedAt >= start) sum += hold.units;
    }
    return sum;
  }

  /** Returns true if there are any such units. Examines a limited number of holds; returns true if there are more. */
  isWithin({ start, end }: { readonly start: number; readonly end: number }, windows: number): boolean {
    for (let i = 0; i < MOST_AT_ONCE; i++) {
      const hold = this.charged[i];
      if (hold === undefined || hold.end >= end) return false;
      if (hold.releases && hold.windows === windows && hold.chargedAt >= start) return true;
    }
    return true;
  }

  /** Records that the units of lapsed holds were returned. Holds that were settled in the meantime are gone. */
  release(): void {
    const { lapsed } = this;
    const last = lapsed.at(-1);
    if (last === undefined) return;
    this.lapsed = NONE;
    const among = new Set(lapsed);
    // Removing thousands of them one by one would move all others each time.
    const end = firstAfter(this.charged, last.end);
    const looked = this.charged.slice(0, end);
    this.charged = looked.filter((hold) => !among.has(hold)).concat(this.charged.slice(end));
    for (const hold of looked) if (among.has(hold)) insert(this.released, hold);
  }
}

KEPT_CLASSES.set('Holds', Holds);

/** The number of holds, in order, that have lapsed by `time`. */
function firstAfter(holds: readonly Hold[], time: number): number {
  let low = 0;
  let high = holds.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds[middle]!.end <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function insert(holds: Hold[], hold: Hold): void {
  holds.splice(firstAfter(holds, hold.end), 0, hold);
}

function take(holds: Hold[], hold: Hold): boolean {
  const at = holds.indexOf(hold);
  if (at >= 0) holds.splice(at, 1);
  return at >= 0;
}
