/** Releases the units of a response that is garbage collected before its body was read to the end. */
const abandoned = new FinalizationRegistry<() => void>((release) => release());

/**
 * Returns the same response. Calls `release` once: when its body was read to the end, fails or is cancelled; immediately without a body.
 */
export function heldResponse(response: Response, release: () => void): Response {
  if (response.body === null) {
    release();
    return response;
  }
  const held = ofSameOrigin(new Response(watched(response.body, release), { headers: response.headers }), response);
  abandoned.register(held, release);
  return held;
}

/** Copies properties that the `Response` constructor doesn't accept, such as unusual statuses like 999. */
function ofSameOrigin(made: Response, origin: Response): Response {
  const { status, statusText, ok, url, redirected, type } = origin;
  const clone = () => ofSameOrigin(Response.prototype.clone.call(made), made);
  const properties = { status, statusText, ok, url, redirected, type, clone };
  return Object.defineProperties(
    made,
    Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, { value }])),
  );
}

/** Returns the same bytes. Calls `release` once they were read to the end, fail or are cancelled. They may fail while nobody reads them. */
export function watched(body: ReadableStream<Uint8Array>, release: () => void): ReadableStream {
  const reader = body.getReader();
  reader.closed.then(release, release);
  return new ReadableStream({
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
}
