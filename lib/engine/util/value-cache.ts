import { BoundedMap, Kept } from './bounded-map.js';

const MAX_VALUES = 1000;
const MAX_BYTES = 10_000_000;
const CHARACTER_BYTES = 2;
/** The deepest nesting of a limit's definition. */
const MAX_DEPTH = 5;

class Known<V> extends Kept {
  constructor(
    key: string,
    readonly value: V,
  ) {
    super(key);
  }
}

/** Caches values by equal objects, and evicts the least recently used. Functions in them are compared by reference. */
export class ValueCache<V> {
  private readonly known = new BoundedMap<Known<V>>(MAX_VALUES, MAX_BYTES);
  private readonly serials = new WeakMap<object, number>();
  private lastSerial = 0;

  /** Returns the value of an equal object, or makes a new one. */
  of(asked: unknown, make: () => V): V {
    return this.ofText(this.textOf(asked, 0), make);
  }

  /** The same by a text that stands for what is asked. */
  ofText(key: string, make: () => V): V {
    const known = this.known.get(key);
    if (known !== undefined) {
      this.known.touch(known);
      return known.value;
    }
    const value = make();
    this.known.put(new Known(key, value), CHARACTER_BYTES * key.length, false);
    return value;
  }

  /** Lengths before texts keep apart what is beside each other. */
  private textOf(value: unknown, depth: number): string {
    if (typeof value === 'string') return `'${value.length}:${value}`;
    if (typeof value === 'function') return this.serialOf(value);
    if (typeof value !== 'object' || value === null) return `${typeof value} ${String(value)}`;
    if (depth === MAX_DEPTH || !isPlain(value)) return this.serialOf(value);
    if (Array.isArray(value)) return this.textOfList(value, depth + 1);
    let text = '{';
    for (const name of Object.getOwnPropertyNames(value).sort()) {
      text += `${name.length}:${name}=${this.textOf((value as Record<string, unknown>)[name], depth + 1)},`;
    }
    return `${text}}`;
  }

  private textOfList(values: readonly unknown[], depth: number): string {
    let text = '[';
    for (const value of values) text += `${this.textOf(value, depth)},`;
    return `${text}]`;
  }

  private serialOf(value: object): string {
    let serial = this.serials.get(value);
    if (serial === undefined) this.serials.set(value, (serial = ++this.lastSerial));
    return `#${serial}`;
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Array.isArray(value);
}
