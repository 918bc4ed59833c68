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
    return this.ofText(this.textOf(asked), make);
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

  /** The text of a value, in one piece: many that are put together take more memory. */
  private textOf(value: unknown): string {
    const parts: string[] = [];
    this.write(parts, value, 0);
    return parts.join('');
  }

  /** Lengths before texts keep apart what follows them. */
  private write(parts: string[], value: unknown, depth: number): void {
    if (typeof value === 'string') parts.push(`'${value.length}:${value}`);
    else if (typeof value === 'function') parts.push(this.serialOf(value));
    else if (typeof value !== 'object' || value === null) parts.push(`${typeof value} ${String(value)}`);
    else if (depth === MAX_DEPTH || !isPlain(value)) parts.push(this.serialOf(value));
    else if (Array.isArray(value)) {
      parts.push('[');
      for (const each of value) {
        this.write(parts, each, depth + 1);
        parts.push(',');
      }
      parts.push(']');
    } else {
      parts.push('{');
      for (const name of Object.getOwnPropertyNames(value).sort()) {
        parts.push(`${name.length}:${name}=`);
        this.write(parts, (value as Record<string, unknown>)[name], depth + 1);
        parts.push(',');
      }
      parts.push('}');
    }
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
