import type { UpstreamResponse } from '../headers/upstream-report.js';
import { isJson, isStream, readJson } from './bodies.js';
import { heldResponse } from './held-response.js';
import type { OutboundCall } from '../outbound-call.js';
import type { OutboundCaller } from '../outbound-caller.js';
import type { Permit } from '../permit.js';

/** A `fetch` whose calls wait for their turn. */
export function limitedFetch(caller: OutboundCaller<Request, Response>): typeof fetch {
  const { settings } = caller;
  return async (input, init) => {
    const request = new Request(input, init);
    const call = await caller.call(() => request.clone(), request.signal);
    const sent = {
      method: request.method,
      hasKey: request.headers.has('idempotency-key'),
      canRepeat: !isStream(init?.body),
    };
    let next = request;
    let permit = await call.enter();
    for (;;) {
      const current = next;
      if (sent.canRepeat && call.mayRepeat) next = current.clone();
      const response = await send(current, init, call);
      const report = call.answered(await readable(response, settings.readsBody ? call.bodyMs : undefined));
      const waitMs = call.waitMs(sent, report, response.status);
      const again = waitMs === undefined ? undefined : await reenter(call, waitMs, response);
      if (again === undefined) return handOn(response, permit, caller);
      permit = again;
      discard(response);
    }
  };
}

/** Sends a request. What it holds is released if it fails. */
async function send(request: Request, init: RequestInit | undefined, call: OutboundCall): Promise<Response> {
  try {
    // The dispatcher of Node's own `fetch` is no part of the request.
    const { dispatcher } = (init ?? {}) as { dispatcher?: unknown };
    return await (dispatcher === undefined ? fetch(request) : fetch(request, { dispatcher } as RequestInit));
  } catch (error) {
    call.failed();
    throw error;
  }
}

/** Waits for the next attempt. If the wait is ended, nobody gets the refusal. */
async function reenter(call: OutboundCall, waitMs: number, refusal: Response): Promise<Permit | undefined> {
  try {
    return await call.reenter(waitMs);
  } catch (error) {
    discard(refusal);
    throw error;
  }
}

/** Nobody reads it any more: its connection, and what was kept for it, are free. */
function discard({ body }: Response): void {
  if (body !== null && !body.locked) body.cancel().catch(() => undefined);
}

/** What parsers see of a response. */
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
    // A copy that nobody reads would keep all of the body.
    void caller.settle(permit, copy).then(() => copies.forEach(discard));
  }
  return permit.holds ? heldResponse(response, () => void permit.release()) : response;
}
