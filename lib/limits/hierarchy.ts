import type { CompiledLimit } from './compiled-limit.js';
import { plainIdentity } from './identity.js';

/** Begins the identity of a counter within others. What follows is the path of these, the root first, then a line end, then its own. */
const WITHIN = '\nwithin\n';
/** Ends the path, and parts it: plain identities hold neither. */
const END = '\n';
const STEP = '/';

/** Stands for a parent of whom a request says nothing. No identity is empty. */
export const NOBODY = '';

/** A counter that may be one within others. */
interface Nested {
  readonly limit: Pick<CompiledLimit, 'parent'>;
  readonly identity: string;
}

/** An identity within that of its parent's counter: the same one within others is another counter. */
export function identityWithin(parent: Nested, own: string): string {
  return WITHIN + pathOf(parent) + END + own;
}

/** The identity that a limit's own `key` gave, without those that it is within. */
export function ownIdentity({ limit, identity }: Nested): string {
  return isWithin({ limit, identity }) ? identity.slice(endOfPath(identity) + END.length) : identity;
}

/** An identity as people are shown it: `o1/t1/u1`, the root first. */
export function shownIdentity(counter: Nested): string {
  return isWithin(counter) ? parentPath(counter.identity) + STEP + ownIdentity(counter) : counter.identity;
}

/** The identity of what people write as `shownIdentity` shows it: so many parents are before the own one; nothing if there are fewer. */
export function identityOfShown(shown: string, parents: number): string | undefined {
  const steps = shown.split(STEP);
  const own = steps.slice(parents).join(STEP);
  const path = steps.slice(0, parents);
  if (own === '' || path.includes('')) return undefined;
  return WITHIN + path.map(shownStep).join(STEP) + END + own;
}

/** A parent as it is shown: plain, or already hashed. */
function shownStep(step: string): string {
  return /^#[\w-]{43}$/.test(step) ? step : plainIdentity(step);
}

/** Where a counter within others stands: the plain identities of its parents, the root first, and its own. */
export function placeOf(counter: Nested): string[] | undefined {
  return isWithin(counter)
    ? [...parentPath(counter.identity).split(STEP), plainIdentity(ownIdentity(counter))]
    : undefined;
}

/** How many others a counter is within. */
export function depthOf(counter: Nested): number {
  return isWithin(counter) ? parentPath(counter.identity).split(STEP).length : 0;
}

/** Whether a counter is the one that another one is within. */
export function isParentOf(parent: NamedNested, child: NamedNested): boolean {
  if (child.limit.parent !== parent.limit.name || !isWithin(child)) return false;
  return parentPath(child.identity) === pathOf(parent);
}

type NamedNested = Nested & { readonly limit: Pick<CompiledLimit, 'name' | 'parent'> };

/** What stands besides its own identity cannot be told of a counter of a limit that is within another one, but asked alone. */
function isWithin({ limit, identity }: Nested): boolean {
  return limit.parent !== undefined && identity.startsWith(WITHIN);
}

function parentPath(identity: string): string {
  return identity.slice(WITHIN.length, endOfPath(identity));
}

function endOfPath(identity: string): number {
  return identity.indexOf(END, WITHIN.length);
}

/** The path of a counter for those within it. */
function pathOf(counter: Nested): string {
  const { identity } = counter;
  return isWithin(counter)
    ? parentPath(identity) + STEP + plainIdentity(ownIdentity(counter))
    : plainIdentity(identity);
}
