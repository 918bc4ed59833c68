import type { DecidesTogether, EntryTogether, FoundEntry } from '../../../engine/limits/limit-feature.js';
import { BORROWING, type LimitUnits, limitUnitsOf } from './terms.js';
import { depthOf, isParentOf } from '../../../engine/limits/hierarchy.js';

/** An entry of a check that may borrow, or from which other entries may borrow. */
interface Link extends LimitUnits {
  /** Its index among the entries. */
  readonly entry: number;
  /** The index of its parent entry; -1 if the check has none. */
  readonly parent: number;
}

/** The entries that may borrow or lend, the deepest first, so that each comes before its parent. */
function linksOf(entries: readonly EntryTogether[]): Link[] {
  const links = entries.map((child, entry): Link => {
    const { above, kept } = limitUnitsOf(child.limit);
    const isNested = child.limit.parent !== undefined;
    return { entry, parent: isNested ? entries.findIndex((parent) => isParentOf(parent, child)) : -1, above, kept };
  });
  const linked = links.filter(
    ({ entry, parent, above }) => parent >= 0 || above > 0 || links.some((each) => each.parent === entry),
  );
  return linked.toSorted((one, other) => depthOf(entries[other.entry]!) - depthOf(entries[one.entry]!));
}

/** The load on the server of comparing the ways to borrow, in checks of a plain counter. */
const WORK = 2;

/** The results for an entry: waits in microseconds; `Infinity` if it never fits. */
interface Waits {
  /** The wait until all entries below it fit: if none of them borrows, and if they may borrow. */
  alone: number;
  lending: number;
  /** The wait until it fits with all entries below it: within its own rate, and with borrowed units. */
  own: number;
  borrowing: number;
  /** True if entries below it borrow in that case. */
  lendsOwn: boolean;
  lendsBorrowing: boolean;
}

/** Returns how long until these units fit an entry. */
type WaitFor<Found> = (found: Found, units: number) => number;

/**
 * Decides which entries borrow. An entry that exceeds its own rate also takes its cost from its parent, which keeps a part of its quota
 * from borrowers. Of all ways the one with the shortest wait wins, and among these the one that borrows the least.
 * `lua/features/borrowing.lua` does the same.
 */
function decide<Found extends FoundEntry>(
  entries: readonly EntryTogether[],
  found: readonly Found[],
  waitFor: WaitFor<Found>,
): void {
  const links = linksOf(entries);
  const all = entries.map((): Waits => ({
    alone: 0,
    lending: 0,
    own: 0,
    borrowing: Infinity,
    lendsOwn: false,
    lendsBorrowing: false,
  }));
  for (const link of links) {
    const { entry, parent } = link;
    const waits = all[entry]!;
    weigh(entries[entry]!.limit.shadow, link, waits, (units) => waitFor(found[entry]!, found[entry]!.cost + units));
    if (parent < 0) continue;
    const lender = all[parent]!;
    lender.alone = Math.max(lender.alone, waits.own);
    lender.lending = Math.max(lender.lending, Math.min(waits.own, waits.borrowing));
  }
  const lends = new Set<number>();
  for (const { entry, parent, above, kept } of links.toReversed()) {
    const own = found[entry]!;
    const waits = all[entry]!;
    const borrows = (parent < 0 || lends.has(parent)) && waits.borrowing < waits.own;
    const lendsHere = borrows ? waits.lendsBorrowing : waits.lendsOwn;
    if (lendsHere) lends.add(entry);
    if (entries[entry]!.limit.shadow) continue;
    own.withheld = Math.max(borrows ? 0 : above, lendsHere ? kept : 0);
    own.allowed = waitFor(own, own.cost + own.withheld) === 0;
  }
}

/** Calculates the waits of an entry. `until` returns how long until its cost and further units fit. */
function weigh(shadow: boolean, { above, kept }: Link, waits: Waits, until: (more: number) => number): void {
  const { alone, lending } = waits;
  if (shadow) {
    // A shadow limit never rejects, and keeps nothing.
    waits.own = lending;
    waits.lendsOwn = lending < alone;
    return;
  }
  waits.own = Math.max(alone, until(above));
  if (lending < alone) {
    // The units that it keeps and the part of its ceiling above its rate overlap, so the larger of the two is unavailable.
    const wait = Math.max(lending, until(Math.max(above, kept)));
    waits.lendsOwn = wait < waits.own;
    waits.own = Math.min(waits.own, wait);
  }
  if (above === 0 || waits.own === 0) return;
  waits.borrowing = Math.max(alone, until(0));
  if (lending < alone) {
    const wait = Math.max(lending, until(kept));
    waits.lendsBorrowing = wait < waits.borrowing;
    waits.borrowing = Math.min(waits.borrowing, wait);
  }
}

/** Makes limits of a check borrow from each other. */
export const decidesTogether: DecidesTogether = {
  name: BORROWING,
  work: WORK,
  decide,
  numbers: (entries) =>
    linksOf(entries).flatMap(({ entry, parent, above, kept }) => [entry + 1, parent + 1, above, kept]),
};
