import { depthOf, isParentOf } from '../../../engine/limits/hierarchy.js';
import type { EntryTogether } from '../../../engine/limits/limit-feature.js';
import { type LimitUnits, limitUnitsOf } from './limit-units.js';

/** An entry of a check that may borrow, or from which others of the check may. */
export interface Link extends LimitUnits {
  /** Its index among the entries. */
  readonly entry: number;
  /** The index of the entry that it is within; -1 if the check has none. */
  readonly parent: number;
}

/** The entries that may borrow or lend, the deepest first, so that each comes before the one it is within. */
export function linksOf(entries: readonly EntryTogether[]): Link[] {
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
