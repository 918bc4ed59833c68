/** Returns the value if it is an object. */
export function asObject<T extends object>(value: unknown): T | undefined {
  return typeof value === 'object' && value !== null ? (value as T) : undefined;
}
