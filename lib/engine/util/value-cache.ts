import { BoundedMap, Kept } from './bounded-map.js';

const MAX_VALUES = 1000;
const MAX_BYTES = 10_000_000;
const CHARACTER_BYTES = 2;
/** The maximum nesting of a limit's definition. */
const MAX_DEPTH = 5;

class Known<V> extends Kept {
  constructor(
    key: string,
    readonly value: V,
  ) {
    super(key);
  }
}

/** Caches values by equal objects, and evicts the least recently used. Functions in these objects are compared by reference. */
export class ValueCache<V> {
  private readonly known = new BoundedMap<Known<V>>(MAX_VALUES, MAX_BYTES);
  private readonly serials = new WeakMap<object, number>();
  private lastSerial = 0;

  /** Returns the value of an equal object, or creates a new one. */
  of(asked: unknown, make: () => V): V {
    const parts: string[] = [];
    this.write(asked, 0, parts);
    // A concatenated string would stay a tree of its parts.
    const key = parts.join('');
    const known = this.known.get(key);
    if (known !== undefined) {
      this.known.touch(known);
      return known.value;
    }
    const value = make();
    this.known.put(new Known(key, value), CHARACTER_BYTES * key.length, false);
    return value;
  }

  /** Writes a text that identifies a value. Each text is preceded by its length, so that adjacent texts can't be confused. */
  private write(value: unknown, depth: number, parts: string[]): void {
    if (typeof value === 'string') parts.push("'", String(value.length), ':', value);
    else if (typeof value === 'function') parts.push(this.serialOf(value));
    else if (typeof value !== 'object' || value === null) parts.push(typeof value, ' ', String(value));
    else if (depth === MAX_DEPTH || !isPlain(value)) parts.push(this.serialOf(value));
    else if (Array.isArray(value)) this.writeList(value, depth + 1, parts);
    else this.writeObject(value as Record<string, unknown>, depth + 1, parts);
  }

  private writeObject(value: Record<string, unknown>, depth: number, parts: string[]): void {
    parts.push('{');
    for (const name of Object.getOwnPropertyNames(value).sort()) {
      parts.push(String(name.length), ':', name, '=');
      this.write(value[name], depth, parts);
      parts.push(',');
    }
    parts.push('}');
  }

  private writeList(values: readonly unknown[], depth: number, parts: string[]): void {
    parts.push('[');
    for (const value of values) {
      this.write(value, depth, parts);
      parts.push(',');
    }
    parts.push(']');
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
