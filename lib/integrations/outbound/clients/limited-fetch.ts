import type { UpstreamResponse } from '../../../engine/limit-headers/upstream-report.js';
import {
  BODY_HEADER,
  heldResponse,
  isJson,
  isStream,
  readJson,
  redirectOf,
  SECRET_HEADER,
} from './requests-and-responses.js';
import type { OutboundCall, OutboundCaller, Permit } from '../outbound-call.js';

/** The number of redirects that `fetch` follows. */
const MOST_REDIRECTS = 20;
/** The statuses that `fetch` follows. */
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** A response to pass on, and the permit of its request. */
interface Answered {
  readonly response: Response;
  readonly permit: Permit;
}

/** A `fetch` whose calls wait for their turn. It follows redirects itself, since each is limited on its own. */
export function limitedFetch(caller: OutboundCaller<Request, Response>): typeof fetch {
  return async (input, init) => {
    const since = performance.now();
    const first = new Request(input, init);
    // Provides the body again; a stream can be sent only once.
    const again = bodyOf(first, init);
    let request = first;
    for (let redirects = 0; ; redirects++) {
      const { response, permit } = await sendLimited(caller, request, init, { since, canRepeat: again !== undefined });
      const next = isFollowed(request) ? await redirected(request, response, redirects, again, permit) : undefined;
      if (next === undefined) return handOn(redirects > 0 ? asRedirected(response) : response, permit, caller);
      request = next;
    }
  };
}

/** Sends a request, again if necessary, until there is a response to pass on. */
async function sendLimited(
  caller: OutboundCaller<Request, Response>,
  request: Request,
  init: RequestInit | undefined,
  { since, canRepeat }: { readonly since: number; readonly canRepeat: boolean },
): Promise<Answered> {
  const { settings } = caller;
  const call = await caller.call(() => request.clone(), request.signal, since);
  const sent = { method: request.method, hasKey: request.headers.has('idempotency-key'), canRepeat };
  let next = request;
  let permit = await call.enter();
  for (;;) {
    const current = next;
    if (canRepeat && call.mayRepeat) next = current.clone();
    const response = await send(current, init, call);
    const report = call.answered(await readable(response, settings.readsBody ? call.bodyMs : undefined));
    const waitMs = call.waitMs(sent, report, response.status);
    const again = waitMs === undefined ? undefined : await reenter(call, waitMs, response);
    if (again === undefined) return { response, permit };
    permit = again;
    discard(response);
  }
}

/** Returns the body for another attempt. */
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
  const { status, headers } = response;
  try {
    const location = headers.get('location');
    if (location === null || !REDIRECTS.has(status)) return undefined;
    // Node decodes header bytes as latin1, but servers write UTF-8.
    const redirect = redirectOf(request, status, Buffer.from(location, 'latin1').toString());
    await permit.release();
    discard(response);
    if (redirects === MOST_REDIRECTS) throw new Error('redirect count exceeded');
    const { keepsBody, sameOrigin, url, method } = redirect;
    if (keepsBody && again === undefined) throw new Error('a body that is a stream is not sent twice');
    const kept = [...request.headers].filter(
      ([name]) => (keepsBody || !BODY_HEADER.test(name)) && (sameOrigin || !SECRET_HEADER.test(name)),
    );
    const { signal, credentials, mode, referrer, referrerPolicy, keepalive } = request;
    const body = keepsBody ? ((await again!()) ?? null) : null;
    return new Request(url, {
      signal,
      credentials,
      mode,
      referrer,
      referrerPolicy,
      keepalive,
      method,
      headers: kept,
      body,
    });
  } catch (cause) {
    void permit.release();
    discard(response);
    throw new TypeError('fetch failed', { cause });
  }
}

/** A response after redirects. */
function asRedirected(response: Response): Response {
  const clone = () => asRedirected(Response.prototype.clone.call(response));
  return Object.defineProperties(response, {
    redirected: { value: true },
    clone: { value: clone, configurable: true },
  });
}

/** Sends a request. If it fails, releases its units. */
async function send(request: Request, init: RequestInit | undefined, call: OutboundCall): Promise<Response> {
  try {
    // `Request` does not carry the dispatcher of Node's own `fetch`.
    const { dispatcher } = (init ?? {}) as { dispatcher?: unknown };
    // With any option, the constructor resets the referrer.
    const { referrer, referrerPolicy } = request;
    const options = {
      ...(isFollowed(request) && { redirect: 'manual', referrer, referrerPolicy }),
      ...(dispatcher !== undefined && { dispatcher }),
    };
    return await fetch(request, options as RequestInit);
  } catch (error) {
    call.failed();
    throw error;
  }
}

/** Waits for the next attempt. If the wait is aborted, the rejection is discarded. */
async function reenter(call: OutboundCall, waitMs: number, refusal: Response): Promise<Permit | undefined> {
  try {
    return await call.reenter(waitMs);
  } catch (error) {
    discard(refusal);
    throw error;
  }
}

/** Cancels a body that nobody reads any more, which frees its connection and buffers. */
function discard({ body }: Response): void {
  if (body !== null && !body.locked) body.cancel().catch(() => undefined);
}

/** A response as the parsers get it. */
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
