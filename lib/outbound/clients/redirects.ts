/** What a request becomes that is redirected. */
export interface Redirect {
  readonly url: URL;
  readonly method: string;
  /** Whether it keeps its body, and what says of what kind that is. */
  readonly keepsBody: boolean;
  /** Whether the headers may go there that are secret. */
  readonly sameOrigin: boolean;
}

const STATUSES = new Set([301, 302, 303, 307, 308]);
const SEE_OTHER = 303;

/** Says of which kind a body is. */
export const BODY_HEADER = /^content-/i;
/** Belongs to one origin. */
export const SECRET_HEADER = /^(?:(?:proxy-)?authorization|cookie|host)$/i;

/** Where a response leads to, as the Fetch standard has it; nothing if it is no redirect. Throws for what is no URL of HTTP. */
export function redirectOf(
  { url: from, method }: { readonly url: string; readonly method: string },
  status: number,
  location: string | null,
): Redirect | undefined {
  if (!STATUSES.has(status) || location === null) return undefined;
  const before = new URL(from);
  const url = new URL(location, before);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError(`URL scheme of ${url.protocol}`);
  if (url.hash === '') url.hash = before.hash;
  const verb = method.toUpperCase();
  const isRead = verb === 'GET' || verb === 'HEAD';
  const becomesGet = status === SEE_OTHER ? !isRead : status <= 302 && verb === 'POST';
  return { url, method: becomesGet ? 'GET' : method, keepsBody: !becomesGet, sameOrigin: url.origin === before.origin };
}
