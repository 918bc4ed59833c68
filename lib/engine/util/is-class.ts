/** Whether a value is a class, as it stands in code of ES2015 and later. Calling it throws. */
export function isClass(value: unknown): boolean {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));
}

/** Whether a value can be called: a function, and no class. */
export function isCallable(value: unknown): boolean {
  return typeof value === 'function' && !isClass(value);
}
