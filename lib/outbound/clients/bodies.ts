const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i;

/** Whether a body is JSON, as its headers say. */
export function isJson(headers: { get(name: string): string | null }): boolean {
  return JSON_TYPE.test(headers.get('content-type') ?? '');
}

/** Whether a body can be sent only once. */
export function isStream(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  return body instanceof ReadableStream || Symbol.asyncIterator in body || 'pipe' in body;
}

/** A text as JSON; nothing if it is none. */
export function jsonOf(text: unknown): unknown {
  if (typeof text !== 'string' && !Buffer.isBuffer(text)) return undefined;
  try {
    return JSON.parse(text.toString());
  } catch {
    return undefined;
  }
}
