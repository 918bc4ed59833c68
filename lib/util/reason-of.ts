/** What an error says; anything else as text. */
export function reasonOf(error: unknown): string {
  // Not `instanceof`: an error may come from another realm.
  const message: unknown =
    typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined;
  return typeof message === 'string' ? message : String(error);
}
