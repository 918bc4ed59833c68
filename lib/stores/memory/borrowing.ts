import type { Link } from '../links.js';
import type { View } from './counter-view.js';
import { waitFor } from './evaluation.js';

/** The results for an entry: waits in microseconds, `Infinity` for what never fits. */
interface Waits {
  /** Until all entries within it fit: if none of them borrows, and if they may. */
  alone: number;
  lending: number;
  /** Until it fits with all entries within it: by its own rate, and with what it borrows. */
  own: number;
  borrowing: number;
  /** Whether those within it borrow then. */
  lendsOwn: boolean;
  lendsBorrowing: boolean;
}

/**
 * Decides what entries may borrow. An entry beyond its own rate also takes its cost from the one it is within, which keeps a part
 * of its quota from borrowers. Of all ways the one with the shortest wait counts, and of these the one that borrows least. `met`
 * of each view is what it then keeps from the check. `lua/driver/borrow.lua` does the same.
 */
export function borrow(views: readonly View[], links: readonly Link[]): void {
  const found = new Map<number, Waits>();
  const of = (entry: number): Waits => {
    let waits = found.get(entry);
    if (waits === undefined) {
      waits = { alone: 0, lending: 0, own: 0, borrowing: Infinity, lendsOwn: false, lendsBorrowing: false };
      found.set(entry, waits);
    }
    return waits;
  };
  for (const { entry, parent } of links) {
    const waits = of(entry);
    weigh(views[entry]!, waits);
    if (parent < 0) continue;
    const above = of(parent);
    above.alone = Math.max(above.alone, waits.own);
    above.lending = Math.max(above.lending, Math.min(waits.own, waits.borrowing));
  }
  const lends = new Set<number>();
  for (let i = links.length - 1; i >= 0; i--) {
    const { entry, parent } = links[i]!;
    const view = views[entry]!;
    const waits = of(entry);
    const borrows = (parent < 0 || lends.has(parent)) && waits.borrowing < waits.own;
    const lendsHere = borrows ? waits.lendsBorrowing : waits.lendsOwn;
    if (lendsHere) lends.add(entry);
    const { shadow, above, kept } = view.limit;
    if (shadow) continue;
    view.met = Math.max(borrows ? 0 : above, lendsHere ? kept : 0);
    view.allowed = waitFor(view, view.cost + view.met) === 0;
  }
}

function weigh(view: View, waits: Waits): void {
  const { cost } = view;
  const { shadow, above, kept } = view.limit;
  const { alone, lending } = waits;
  if (shadow) {
    // It never refuses, and keeps nothing.
    waits.own = lending;
    waits.lendsOwn = lending < alone;
    return;
  }
  waits.own = Math.max(alone, waitFor(view, cost + above));
  if (lending < alone) {
    // What it keeps and the part of its ceiling above its rate overlap: the larger one is out of reach.
    const wait = Math.max(lending, waitFor(view, cost + Math.max(above, kept)));
    waits.lendsOwn = wait < waits.own;
    waits.own = Math.min(waits.own, wait);
  }
  if (above === 0 || waits.own === 0) return;
  waits.borrowing = Math.max(alone, waitFor(view, cost));
  if (lending < alone) {
    const wait = Math.max(lending, waitFor(view, cost + kept));
    waits.lendsBorrowing = wait < waits.borrowing;
    waits.borrowing = Math.min(waits.borrowing, wait);
  }
}
