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
