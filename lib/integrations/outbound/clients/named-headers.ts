/** Headers with a lookup by lower-case name. */
export interface NamedHeaders {
  get(name: string): string | null;
}

/**
 * Looks up headers in all forms that clients use: an object, whose values may be lists; a flat list of names and values, which may be
 * bytes; pairs; and objects with a `get` method.
 */
export function namedHeaders(headers: unknown): NamedHeaders {
  const values = new Map<string, string>();
  for (const [name, value] of pairsOf(headers)) {
    const text = textOf(value);
    if (text === undefined) continue;
    const key = String(name).toLowerCase();
    const before = values.get(key);
    values.set(key, before === undefined ? text : `${before}, ${text}`);
  }
  return { get: (name) => values.get(name) ?? null };
}

function pairsOf(headers: unknown): (readonly [unknown, unknown])[] {
  if (typeof headers !== 'object' || headers === null) return [];
  if (Array.isArray(headers) && !Array.isArray(headers[0])) {
    const flat = headers as readonly unknown[];
    return Array.from({ length: flat.length >> 1 }, (_, index) => [flat[2 * index], flat[2 * index + 1]] as const);
  }
  if (Symbol.iterator in headers) return [...(headers as Iterable<readonly [unknown, unknown]>)];
  return Object.entries(headers);
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(String).join(', ');
  return typeof value === 'number' || Buffer.isBuffer(value) ? value.toString() : undefined;
}
