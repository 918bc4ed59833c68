import type { CheckEntry } from '../limits/counter.js';
import { depthOf, isParentOf } from '../limits/hierarchy.js';

/** An entry of a check that may borrow, or from which others of the check may. */
export interface Link {
  /** Its index among the entries. */
  readonly entry: number;
  /** The index of the entry that it is within; -1 if the check has none. */
  readonly parent: number;
}

/** Whether a check may borrow. */
export function mayBorrow(entries: readonly CheckEntry[]): boolean {
  for (let i = 0; i < entries.length; i++) if (entries[i]!.limit.above > 0) return true;
  return false;
}

/** The entries that may borrow or lend, the deepest first, so that each comes before the one it is within. */
export function linksOf(entries: readonly CheckEntry[]): Link[] {
  const links = entries.map((child, entry): Link => {
    if (child.limit.parent === undefined) return { entry, parent: -1 };
    return { entry, parent: entries.findIndex((parent) => isParentOf(parent, child)) };
  });
  const linked = links.filter(
    ({ entry, parent }) =>
      parent >= 0 || entries[entry]!.limit.above > 0 || links.some((each) => each.parent === entry),
  );
  return linked.toSorted((one, other) => depthOf(entries[other.entry]!) - depthOf(entries[one.entry]!));
}
