/**
 * Throws what the `import()` of an optional package failed with. A bundler such as esbuild refuses to build an app in which the package is
 * not installed, unless the import is followed by a `catch`.
 */
export function rethrow(error: unknown): never {
  throw error;
}
