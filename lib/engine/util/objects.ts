/**
 * Its subclasses don't inherit from `Object.prototype`, which other code may have extended, so they never show members that they leave out.
 */
export abstract class Bare {}
Object.setPrototypeOf(Bare.prototype, null);

/** An object's own members, without those that other code added to `Object.prototype`. */
export function bare<T extends object>(parts: T): T {
  // An object from `Object.create(null)` would be a hash table, which takes five times as much memory.
  return Object.setPrototypeOf({ ...parts }, null) as T;
}

/** Returns true if the value is an object, also if it is a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Returns the value if it is an object. */
export function asObject<T extends object>(value: unknown): T | undefined {
  return isRecord(value) ? (value as T) : undefined;
}

/** A copy without the members that JSON omits. */
export function jsonCopy<T extends object>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** Returns the value of a key. If there is none, makes one and stores it. */
export function getOrMake<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** Returns true if a value is a class in code of ES2015 and later. Calling it throws. */
export function isClass(value: unknown): boolean {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));
}

/** Returns true if a value can be called: it is a function, but not a class. */
export function isCallable(value: unknown): boolean {
  return typeof value === 'function' && !isClass(value);
}
