/** What an error says; anything else as text. Never throws: what users' code throws may be anything. */
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
