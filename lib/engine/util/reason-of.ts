/** The message of an error; anything else as text. Never throws, whatever users' code has thrown. */
export function reasonOf(error: unknown): string {
  try {
    // Not `instanceof`: an error may come from another realm.
    const message: unknown =
      typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined;
    return typeof message === 'string' ? message : String(error);
  } catch {
    return 'what was thrown has no text';
  }
}

/**
 * Throws what the `import()` of an optional package failed with. A bundler such as esbuild refuses to build an app in which the package is
 * not installed, unless the import is followed by a `catch`.
 */
export function rethrow(error: unknown): never {
  throw error;
}
