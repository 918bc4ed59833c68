/** Releases what a response holds that nobody has and nobody read to its end. */
const abandoned = new FinalizationRegistry<() => void>((release) => release());

/** The same response, which calls back once: when its body was read to its end, failed or was cancelled; at once if it has none. */
export function heldResponse(response: Response, release: () => void): Response {
  if (response.body === null) {
    release();
    return response;
  }
  const body = watched(response.body, release);
  const { status, statusText, headers } = response;
  const held = ofSameOrigin(new Response(body, { status, statusText, headers }), response);
  abandoned.register(held, release);
  return held;
}

/** What the constructor cannot be told of a response. */
function ofSameOrigin(made: Response, { url, redirected, type }: Response): Response {
  const clone = () => ofSameOrigin(Response.prototype.clone.call(made), made);
  return Object.defineProperties(made, {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
    clone: { value: clone },
  });
}

function watched(body: ReadableStream<Uint8Array>, release: () => void): ReadableStream {
  const reader = body.getReader();
  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          // An empty chunk ends no read.
          if (value.byteLength > 0) controller.enqueue(value);
          return;
        }
        release();
        controller.close();
        controller.byobRequest?.respond(0);
      } catch (error) {
        release();
        controller.error(error);
      }
    },
    async cancel(reason) {
      release();
      await reader.cancel(reason);
    },
  });
}
