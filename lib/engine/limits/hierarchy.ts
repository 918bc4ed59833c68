import type { CompiledLimit } from './compiled-limit.js';
import { plainIdentity } from './identity.js';

/**
 * The prefix of the identity of a nested counter. It is followed by the path of its parents, the root first, then a line feed, then its own
 * key.
 */
const WITHIN = '\nwithin\n';
/** These end and separate the path. Plain identities contain neither of them. */
const END = '\n';
const STEP = '/';

/** Used for a parent without a key in the request. No key is empty. */
export const NOBODY = '';

interface Nested {
  readonly limit: Pick<CompiledLimit, 'parent'>;
  readonly identity: string;
}

/** Nests an identity in that of its parent's counter: the same key within other parents is a different counter. */
export function identityWithin(parent: Nested, own: string): string {
  return WITHIN + pathOf(parent) + END + own;
}

/** The key that the limit's own `key` produced, without those of its parents. */
export function ownIdentity({ limit, identity }: Nested): string {
  return isWithin({ limit, identity }) ? identity.slice(endOfPath(identity) + END.length) : identity;
}

/** An identity in the form in which it is displayed: `o1/t1/u1`, the root first. */
export function shownIdentity(counter: Nested): string {
  return isWithin(counter) ? parentPath(counter.identity) + STEP + ownIdentity(counter) : counter.identity;
}

/** Reads an identity in that form, with this number of parents before its own key; `undefined` if there are fewer. */
export function identityOfShown(shown: string, parents: number): string | undefined {
  const steps = shown.split(STEP);
  const own = steps.slice(parents).join(STEP);
  const path = steps.slice(0, parents);
  if (own === '' || path.includes('')) return undefined;
  return WITHIN + path.map(shownStep).join(STEP) + END + own;
}

/** A parent in the form in which it is displayed: in plain text, or already hashed. */
function shownStep(step: string): string {
  return /^#[\w-]{43}$/.test(step) ? step : plainIdentity(step);
}

/** The path of a nested counter: the plain identities of its parents, the root first, and its own. */
export function placeOf(counter: Nested): string[] | undefined {
  return isWithin(counter)
    ? [...parentPath(counter.identity).split(STEP), plainIdentity(ownIdentity(counter))]
    : undefined;
}

/** The number of parents of a counter. */
export function depthOf(counter: Nested): number {
  return isWithin(counter) ? parentPath(counter.identity).split(STEP).length : 0;
}

/** Returns true if a counter is the parent of another one. */
export function isParentOf(parent: NamedNested, child: NamedNested): boolean {
  if (child.limit.parent !== parent.limit.name || !isWithin(child)) return false;
  return parentPath(child.identity) === pathOf(parent);
}

type NamedNested = Nested & { readonly limit: Pick<CompiledLimit, 'name' | 'parent'> };

/** Returns true if a counter is nested. If a nested limit is checked alone, only its own key is known. */
function isWithin({ limit, identity }: Nested): boolean {
  return limit.parent !== undefined && identity.startsWith(WITHIN);
}

function parentPath(identity: string): string {
  return identity.slice(WITHIN.length, endOfPath(identity));
}

function endOfPath(identity: string): number {
  return identity.indexOf(END, WITHIN.length);
}

/** The path of a counter for its children. */
function pathOf(counter: Nested): string {
  const { identity } = counter;
  return isWithin(counter)
    ? parentPath(identity) + STEP + plainIdentity(ownIdentity(counter))
    : plainIdentity(identity);
}
