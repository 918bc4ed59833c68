/** The request that a redirect leads to. */
export interface Redirect {
  readonly url: URL;
  readonly method: string;
  /** True if the body is kept, and with it the headers that describe it. */
  readonly keepsBody: boolean;
  /** True if secret headers may be sent to the new URL. */
  readonly sameOrigin: boolean;
}

/** After these statuses, clients repeat a POST as a GET. */
const MOVED = new Set([301, 302]);
const SEE_OTHER = 303;

/** Headers that describe the body. */
export const BODY_HEADER = /^content-/i;
/** Headers that must not be sent to another origin. */
export const SECRET_HEADER = /^(?:(?:proxy-)?authorization|cookie|host)$/i;

/** The target of a redirect, according to the Fetch standard. Throws if it isn't an HTTP URL. */
export function redirectOf(
  { url: from, method }: { readonly url: string; readonly method: string },
  status: number,
  location: string,
): Redirect {
  const before = new URL(from);
  const url = new URL(location, before);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError(`Unsupported protocol ${url.protocol}`);
  if (url.hash === '') url.hash = before.hash;
  const verb = method.toUpperCase();
  const isRead = verb === 'GET' || verb === 'HEAD';
  const becomesGet = status === SEE_OTHER ? !isRead : MOVED.has(status) && verb === 'POST';
  return { url, method: becomesGet ? 'GET' : method, keepsBody: !becomesGet, sameOrigin: url.origin === before.origin };
}
