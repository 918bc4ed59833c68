const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i;

/** Returns true if the headers declare a JSON body. */
export function isJson(headers: { get(name: string): string | null }): boolean {
  return JSON_TYPE.test(headers.get('content-type') ?? '');
}

/** Returns true if a body can be sent only once. */
export function isStream(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  return body instanceof ReadableStream || Symbol.asyncIterator in body || 'pipe' in body;
}

/** Maximum length of a body to parse, in bytes. */
const MOST_PARSED = 4_000_000;

/** Parses a text as JSON; `undefined` if it is not JSON, or too long. */
export function jsonOf(text: unknown): unknown {
  if (typeof text !== 'string' && !Buffer.isBuffer(text)) return undefined;
  if (text.length > MOST_PARSED) return undefined;
  try {
    return JSON.parse(text.toString());
  } catch {
    return undefined;
  }
}

/** Reads a body as JSON, and cancels the rest. Returns `undefined` if it isn't JSON, is too long, or takes longer than `longestMs`. */
export async function readJson(body: ReadableStream<Uint8Array> | null, longestMs: number): Promise<unknown> {
  if (body === null) return undefined;
  const reader = body.getReader();
  let isCut = false;
  const cancel = () => {
    isCut = true;
    reader.cancel().catch(() => undefined);
  };
  const timeout = setTimeout(cancel, longestMs);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      chunks.push(next.value);
      length += next.value.byteLength;
      if (length > MOST_PARSED) cancel();
    }
    return isCut ? undefined : jsonOf(Buffer.concat(chunks));
  } catch {
    return undefined;
  } finally {
    clearTimeout(timeout);
  }
}
