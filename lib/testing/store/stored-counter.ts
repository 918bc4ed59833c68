import { KEPT_CLASSES } from '../../engine/algorithms/algorithm.js';
import { Leases } from '../../engine/algorithms/leases.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { ownStoreMessages } from '../../engine/errors/messages/own-store.js';
import type { Counter } from '../../engine/limits/counter.js';
import { type Entry, keyOf } from '../../storage/stores/memory/limit-counters.js';
import { MemoryStore } from '../../storage/stores/memory/memory.store.js';

/** The stored parts of a counter; times are in microseconds. */
type CounterParts = Pick<Entry, 'state' | 'block' | 'estimates' | 'carried' | 'expiresAt'>;

/** The version of the format, to distinguish it from those of later releases. */
const FORMAT = 1;
const PARTS = 6;
KEPT_CLASSES.set('Leases', Leases);
const TAG = '$';

/** Serializes a counter. */
export function textOf({ state, block, estimates, carried, expiresAt }: CounterParts): string {
  return JSON.stringify([FORMAT, expiresAt, carried ?? null, block ?? null, state ?? null, estimates ?? null], written);
}

/** Parses a stored counter. Throws `RateLimitStoreError` if the text isn't one. */
export function partsOf(key: string, text: unknown): CounterParts {
  let parts: unknown;
  try {
    parts = JSON.parse(text as string, read);
  } catch {
    // Not JSON: reported below.
  }
  if (!Array.isArray(parts) || parts.length !== PARTS || parts[0] !== FORMAT) throw unreadable(key, text);
  const [, expiresAt, carried, ...objects] = parts as [number, unknown, unknown, ...unknown[]];
  const isWhole = typeof expiresAt === 'number' && (carried === null || typeof carried === 'number');
  if (!isWhole || !objects.every((each) => each === null || isObject(each))) throw unreadable(key, text);
  const [block, state, estimates] = objects.map((each) => each ?? undefined);
  return { expiresAt, carried: carried ?? undefined, block, state, estimates } as CounterParts;
}

export function unreadable(key: string, text: unknown, cause?: unknown): RateLimitStoreError {
  return new RateLimitStoreError(ownStoreMessages.unreadable(key, text), { cause });
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && !Array.isArray(value) && Object.keys(value as object).length > 0;
}

/** JSON supports neither infinite numbers nor classes. */
function written(_: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) return { [TAG]: String(value) };
  for (const [name, Kept] of KEPT_CLASSES) {
    if (value instanceof Kept) return { [TAG]: name, of: { ...value, index: undefined } };
  }
  return value;
}

function read(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, TAG)) return value;
  const { [TAG]: tag, of } = value as { readonly [TAG]: string; readonly of?: object };
  return of === undefined ? Number(tag) : Object.assign(new (KEPT_CLASSES.get(tag)!)(), of);
}

/** Decides about counters that are stored elsewhere: they are loaded, changed, and read again, all in one turn. */
export class ScratchStore extends MemoryStore {
  /** Microseconds since the epoch. */
  private now = 0;

  constructor() {
    super({ clock: () => this.now, maxKeys: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER });
  }

  begin(now: number): void {
    this.now = now;
  }

  put({ limit, identity }: Counter, parts: CounterParts): void {
    const entry = this.table.of(limit).make(keyOf(identity));
    this.table.keep(limit, Object.assign(entry, parts));
  }

  /** The counter to store; `undefined` if it is empty. */
  get({ limit, identity }: Counter): Entry | undefined {
    return this.table.of(limit).get(keyOf(identity));
  }

  end(): void {
    this.table.clear();
  }
}
