import type { UpstreamResponse } from '../../../engine/limit-headers/upstream-report.js';
import { heldResponse, isJson, isStream, readJson, redirectOf, withProperties } from './requests-and-responses.js';
import type { Answered, OutboundCaller, Permit } from '../outbound-call.js';

const MOST_REDIRECTS = 20;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** A `fetch` whose calls wait for their turn. It follows redirects itself, since each is limited on its own. */
export function limitedFetch(caller: OutboundCaller<Request, Response>): typeof fetch {
  return async (input, init) => {
    const since = performance.now();
    const first = new Request(input, init);
    // Provides the body again; a stream can be sent only once.
    const again = bodyOf(first, init);
    let request = first;
    for (let redirects = 0; ; redirects++) {
      const { answer, permit } = await sendLimited(caller, request, init, { since, canRepeat: again !== undefined });
      const next = isFollowed(request) ? await redirected(request, answer, redirects, again, permit) : undefined;
      if (next === undefined)
        return handOn(redirects > 0 ? withProperties(answer, { redirected: true }) : answer, permit, caller);
      request = next;
    }
  };
}

async function sendLimited(
  caller: OutboundCaller<Request, Response>,
  request: Request,
  init: RequestInit | undefined,
  { since, canRepeat }: { readonly since: number; readonly canRepeat: boolean },
): Promise<Answered<Response>> {
  const call = await caller.call(() => request.clone(), request.signal, since);
  const sent = { method: request.method, hasKey: request.headers.has('idempotency-key'), canRepeat };
  let next = request;
  return call.exchange(sent, {
    send: () => {
      const current = next;
      if (canRepeat && call.mayRepeat) next = current.clone();
      return send(current, init);
    },
    read: (response) => readable(response, caller.settings.readsBody ? call.bodyMs : undefined),
    discard,
  });
}

type BodyAgain = () => Promise<RequestInit['body']>;

/** A function that returns the body again; `undefined` for a stream. */
function bodyOf(request: Request, init: RequestInit | undefined): BodyAgain | undefined {
  const given = init?.body;
  if (isStream(given)) return undefined;
  if (request.body === null) return () => Promise.resolve(null);
  // A form would get a new boundary each time, which wouldn't match the headers.
  if (given !== undefined && given !== null && !(given instanceof FormData)) return () => Promise.resolve(given);
  const copy = request.clone();
  return () => copy.clone().arrayBuffer();
}

/** True if redirects are followed here. With an `integrity` hash, `fetch` itself has to follow them and compare the hash at the end. */
function isFollowed({ redirect, integrity }: Request): boolean {
  return redirect === 'follow' && integrity === '';
}

/** The request that a redirect leads to; `undefined` if the response isn't a redirect. Releases the units of the response. */
async function redirected(
  request: Request,
  response: Response,
  redirects: number,
  again: BodyAgain | undefined,
  permit: Permit,
): Promise<Request | undefined> {
  const { status } = response;
  try {
    const location = response.headers.get('location');
    if (location === null || !REDIRECTS.has(status)) return undefined;
    // Node decodes header bytes as latin1, but servers write UTF-8.
    const redirect = redirectOf(request, status, Buffer.from(location, 'latin1').toString());
    await permit.release();
    discard(response);
    if (redirects === MOST_REDIRECTS) throw new Error('redirect count exceeded');
    const { keepsBody, keepsHeader, url, method } = redirect;
    if (keepsBody && again === undefined) throw new Error('a body that is a stream is not sent twice');
    const headers = [...request.headers].filter(([name]) => keepsHeader(name));
    const { signal, credentials, mode, referrer, referrerPolicy, keepalive } = request;
    const body = keepsBody ? ((await again!()) ?? null) : null;
    const same = { signal, credentials, mode, referrer, referrerPolicy, keepalive };
    return new Request(url, { ...same, method, headers, body });
  } catch (cause) {
    void permit.release();
    discard(response);
    throw new TypeError('fetch failed', { cause });
  }
}

async function send(request: Request, init: RequestInit | undefined): Promise<Response> {
  // `Request` does not carry the dispatcher of Node's own `fetch`.
  const { dispatcher } = (init ?? {}) as { dispatcher?: unknown };
  // With any option, the constructor resets the referrer.
  const { referrer, referrerPolicy } = request;
  const options = {
    ...(isFollowed(request) && { redirect: 'manual', referrer, referrerPolicy }),
    ...(dispatcher !== undefined && { dispatcher }),
  };
  return fetch(request, options as RequestInit);
}

/** Cancels a body that nobody reads any more, which frees its connection and buffers. */
function discard({ body }: Response): void {
  if (body !== null && !body.locked) body.cancel().catch(() => undefined);
}

async function readable(response: Response, bodyMs: number | undefined): Promise<UpstreamResponse> {
  const { status, headers } = response;
  const receivedAt = Date.now();
  if (bodyMs === undefined || !isJson(headers)) return { status, headers, receivedAt };
  const body = await readJson(response.clone().body, bodyMs);
  return { status, headers, receivedAt, body };
}

function handOn(response: Response, permit: Permit, caller: OutboundCaller<Request, Response>): Response {
  if (caller.settings.settle !== undefined) {
    const copies = [response.clone()];
    const copy = () => {
      const next = copies[0]!.clone();
      copies.push(next);
      return next;
    };
    // An unread copy would buffer the whole body.
    void caller.settle(permit, copy).then(() => copies.forEach(discard));
  }
  return permit.holds ? heldResponse(response, () => void permit.release()) : response;
}
