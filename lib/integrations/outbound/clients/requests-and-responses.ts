import type { ResponseHeaders } from '../../../engine/limit-headers/upstream-report.js';

/**
 * Looks up headers in all forms that clients use: an object, whose values may be lists; a flat list of names and values, which may be
 * bytes; pairs; and objects with a `get` method.
 */
export function namedHeaders(headers: unknown): ResponseHeaders {
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

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i;

export function isJson(headers: ResponseHeaders): boolean {
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

/** Cancels bodies that are garbage-collected before they were read to the end, which releases their units and closes the connection. */
const abandoned = new FinalizationRegistry<ReadableStreamDefaultReader>((reader) => {
  reader.cancel().catch(() => undefined);
});

/**
 * Returns the same response. Calls `release` once: when its body was read to the end, fails or is cancelled; immediately without a body.
 */
export function heldResponse(response: Response, release: () => void): Response {
  if (response.body === null) {
    release();
    return response;
  }
  const { headers, status, statusText, ok, url, redirected, type } = response;
  const made = new Response(watched(response.body, release), { headers });
  return withProperties(made, { status, statusText, ok, url, redirected, type });
}

/** Sets properties that the `Response` constructor doesn't accept, such as unusual statuses like 999. Clones have them as well. */
export function withProperties(response: Response, properties: Partial<Response>): Response {
  const clone = () => withProperties(Response.prototype.clone.call(response), properties);
  const own = Object.entries({ ...properties, clone }).map(([name, value]) => [name, { value, configurable: true }]);
  return Object.defineProperties(response, Object.fromEntries(own) as PropertyDescriptorMap);
}

/**
 * Returns the same bytes. Calls `release` once they were read to the end, fail, are cancelled or garbage-collected. They may fail while nobody
 * reads them.
 */
export function watched(body: ReadableStream<Uint8Array>, release: () => void): ReadableStream {
  const reader = body.getReader();
  reader.closed.then(release, release);
  const bytes = new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          // An empty chunk would not complete a read.
          if (value.byteLength > 0) controller.enqueue(value);
          return;
        }
        controller.close();
        controller.byobRequest?.respond(0);
      } catch (error) {
        controller.error(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  // Not the response: apps may keep only its body or a clone.
  abandoned.register(bytes, reader);
  return bytes;
}

/** After these statuses, clients repeat a POST as a GET. */
const MOVED = new Set([301, 302]);
const SEE_OTHER = 303;

const BODY_HEADER = /^content-/i;
const SECRET_HEADER = /^(?:(?:proxy-)?authorization|cookie|host)$/i;

/**
 * The request that a redirect leads to, according to the Fetch standard. If the body isn't kept, neither are the headers that describe it;
 * secret headers are not sent to another origin. Throws if the target isn't an HTTP URL.
 */
export function redirectOf(
  { url: from, method }: { readonly url: string; readonly method: string },
  status: number,
  location: string,
) {
  const before = new URL(from);
  const url = new URL(location, before);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError(`Unsupported protocol ${url.protocol}`);
  if (url.hash === '') url.hash = before.hash;
  const verb = method.toUpperCase();
  const isRead = verb === 'GET' || verb === 'HEAD';
  const becomesGet = status === SEE_OTHER ? !isRead : MOVED.has(status) && verb === 'POST';
  const sameOrigin = url.origin === before.origin;
  const keepsHeader = (name: string) =>
    !(becomesGet && BODY_HEADER.test(name)) && (sameOrigin || !SECRET_HEADER.test(name));
  return { url, method: becomesGet ? 'GET' : method, keepsBody: !becomesGet, sameOrigin, keepsHeader };
}
