import { heldResponse } from './held-response.js';
import type { OutboundCaller } from './outbound-caller.js';
import type { Permit } from './permit.js';

/** A `fetch` whose calls wait for their turn. */
export function limitedFetch(caller: OutboundCaller<Request, Response>): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const permit = await caller.enter(() => request.clone(), request.signal);
    const response = await send(request, init, permit);
    if (caller.settings.settle !== undefined) {
      const copy = response.clone();
      void caller.settle(permit, () => copy.clone());
    }
    return permit.holds ? heldResponse(response, () => void permit.release()) : response;
  };
}

/** Sends a request. What it holds is released if it fails. */
async function send(request: Request, init: RequestInit | undefined, permit: Permit): Promise<Response> {
  try {
    // The dispatcher of Node's own `fetch` is no part of the request.
    const { dispatcher } = (init ?? {}) as { dispatcher?: unknown };
    return await (dispatcher === undefined ? fetch(request) : fetch(request, { dispatcher } as RequestInit));
  } catch (error) {
    void permit.release();
    throw error;
  }
}
