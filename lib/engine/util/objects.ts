/** Objects of its classes have nothing of `Object.prototype`, to which other code may have written: no part that they leave out. */
export abstract class Bare {}
Object.setPrototypeOf(Bare.prototype, null);

/** An object's own parts, without those that other code wrote to `Object.prototype`. */
export function bare<T extends object>(parts: T): T {
  // An object of `Object.create(null)` would be a hash table, five times as large.
  return Object.setPrototypeOf({ ...parts }, null) as T;
}

/** Returns the value if it is an object. */
export function asObject<T extends object>(value: unknown): T | undefined {
  return typeof value === 'object' && value !== null ? (value as T) : undefined;
}

/** Whether a value is a class, as it stands in code of ES2015 and later. Calling it throws. */
export function isClass(value: unknown): boolean {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));
}

/** Whether a value can be called: a function, and no class. */
export function isCallable(value: unknown): boolean {
  return typeof value === 'function' && !isClass(value);
}
