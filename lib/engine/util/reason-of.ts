/** The message of an error; anything else as text. Never throws, regardless of the thrown value. */
export function reasonOf(error: unknown): string {
  try {
    // Not `instanceof`: an error may come from another realm.
    const message: unknown =
      typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined;
    return typeof message === 'string' ? message : String(error);
  } catch {
    return 'the thrown value has no text';
  }
}

/**
 * Throws the error with which the `import()` of an optional package failed. A bundler such as esbuild fails to build an app without the
 * package unless the import is followed by a `catch`.
 */
export function rethrow(error: unknown): never {
  throw error;
}
