/** Objects of its classes have nothing of `Object.prototype`, to which other code may have written: no part that they leave out. */
export abstract class Bare {}
Object.setPrototypeOf(Bare.prototype, null);

/** An object's own parts, without those that other code wrote to `Object.prototype`. */
export function bare<T extends object>(parts: T): T {
  // An object of `Object.create(null)` would be a hash table, five times as large.
  return Object.setPrototypeOf({ ...parts }, null) as T;
}
