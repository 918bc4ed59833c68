import { Leases } from '../algorithms/leases.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { ownStoreMessages } from '../errors/messages/own-store.js';
import { Holds } from '../features/holds/held-units.js';
import type { Entry } from '../stores/memory/limit-counters.js';

/** The parts of a counter that are stored; times are microseconds. */
export type CounterParts = Pick<Entry, 'state' | 'block' | 'estimates' | 'carried' | 'expiresAt'>;

/** Told apart from what later releases store. */
const FORMAT = 1;
/** What a state may hold besides numbers, lists and plain objects, by the names under which they are stored. */
const CLASSES = { Leases, Holds } as const;
type ClassName = keyof typeof CLASSES;
const TAG = '$';

/** A counter as text. */
export function textOf({ state, block, estimates, carried, expiresAt }: CounterParts): string {
  return JSON.stringify([FORMAT, expiresAt, carried ?? null, block ?? null, state ?? null, estimates ?? null], written);
}

/** The counter that a text stands for. Throws `RateLimitStoreError` if it stands for none. */
export function partsOf(key: string, text: unknown): CounterParts {
  try {
    const [format, expiresAt, carried, block, state, estimates] = JSON.parse(text as string, read) as [
      number,
      ...unknown[],
    ];
    if (format === FORMAT && typeof expiresAt === 'number')
      return {
        expiresAt,
        carried: carried ?? undefined,
        block: block ?? undefined,
        ...both(state, estimates),
      } as never;
  } catch {
    // It is no text of ours.
  }
  throw new RateLimitStoreError(ownStoreMessages.unreadable(key, text));
}

function both(state: unknown, estimates: unknown): object {
  return { state: state ?? undefined, estimates: estimates ?? undefined };
}

/** JSON has neither infinite numbers nor classes. */
function written(_: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) return { [TAG]: String(value) };
  for (const name of Object.keys(CLASSES) as ClassName[]) {
    if (value instanceof CLASSES[name]) return { [TAG]: name, of: { ...(value as object), index: undefined } };
  }
  return value;
}

function read(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, TAG)) return value;
  const { [TAG]: tag, of } = value as { readonly [TAG]: string; readonly of?: object };
  return of === undefined ? Number(tag) : Object.assign(new CLASSES[tag as ClassName](), of);
}
