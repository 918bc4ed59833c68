import type { CompiledLimit } from './compiled-limit.js';
import { plainIdentity } from './identity.js';

/**
 * The beginning of the identity of a counter within others. It is followed by the path of these, the root first, then a line end,
 * then its own identity.
 */
const WITHIN = '\nwithin\n';
/** Ends and separates the path: plain identities contain neither. */
const END = '\n';
const STEP = '/';

/** Stands for a parent about which a request says nothing. No identity is empty. */
export const NOBODY = '';

/** A counter that may be within others. */
interface Nested {
  readonly limit: Pick<CompiledLimit, 'parent'>;
  readonly identity: string;
}

/** An identity within that of its parent's counter: the same identity within others is another counter. */
export function identityWithin(parent: Nested, own: string): string {
  return WITHIN + pathOf(parent) + END + own;
}

/** The identity that a limit's own `key` has made, without those of the limits it is within. */
export function ownIdentity({ limit, identity }: Nested): string {
  return isWithin({ limit, identity }) ? identity.slice(endOfPath(identity) + END.length) : identity;
}

/** An identity as it is displayed: `o1/t1/u1`, the root first. */
export function shownIdentity(counter: Nested): string {
  return isWithin(counter) ? parentPath(counter.identity) + STEP + ownIdentity(counter) : counter.identity;
}

/**
 * Reads an identity as `shownIdentity` displays it, with this number of parents before its own; `undefined` if there are fewer.
 */
export function identityOfShown(shown: string, parents: number): string | undefined {
  const steps = shown.split(STEP);
  const own = steps.slice(parents).join(STEP);
  const path = steps.slice(0, parents);
  if (own === '' || path.includes('')) return undefined;
  return WITHIN + path.map(shownStep).join(STEP) + END + own;
}

/** A parent as it is displayed: in plain text, or already hashed. */
function shownStep(step: string): string {
  return /^#[\w-]{43}$/.test(step) ? step : plainIdentity(step);
}

/** The path of a counter within others: the plain identities of its parents, the root first, and its own. */
export function placeOf(counter: Nested): string[] | undefined {
  return isWithin(counter)
    ? [...parentPath(counter.identity).split(STEP), plainIdentity(ownIdentity(counter))]
    : undefined;
}

/** The number of limits that a counter is within. */
export function depthOf(counter: Nested): number {
  return isWithin(counter) ? parentPath(counter.identity).split(STEP).length : 0;
}

/** Whether a counter is the parent of another one. */
export function isParentOf(parent: NamedNested, child: NamedNested): boolean {
  if (child.limit.parent !== parent.limit.name || !isWithin(child)) return false;
  return parentPath(child.identity) === pathOf(parent);
}

type NamedNested = Nested & { readonly limit: Pick<CompiledLimit, 'name' | 'parent'> };

/** Whether a counter is within others. If a limit within another one is asked alone, only its own identity is known. */
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
