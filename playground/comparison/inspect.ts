/** What `inspect` of Node shows of an option in a message, for browsers: options of the playground are texts and numbers. */
export function inspect(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}
