/** Releases what a response holds that nobody has and nobody read to its end. */
const abandoned = new FinalizationRegistry<() => void>((release) => release());

/** The same response, which calls back once: when its body was read to its end, failed or was cancelled; at once if it has none. */
export function heldResponse(response: Response, release: () => void): Response {
  if (response.body === null) {
    release();
    return response;
  }
  const held = ofSameOrigin(new Response(watched(response.body, release), { headers: response.headers }), response);
  abandoned.register(held, release);
  return held;
}

/** What the constructor cannot be told of a response, or takes only where it is usual: upstreams answer with 999, too. */
function ofSameOrigin(made: Response, origin: Response): Response {
  const { status, statusText, ok, url, redirected, type } = origin;
  const clone = () => ofSameOrigin(Response.prototype.clone.call(made), made);
  const properties = { status, statusText, ok, url, redirected, type, clone };
  return Object.defineProperties(
    made,
    Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, { value }])),
  );
}

/** The same bytes; calls back once they were read to the end, failed or were cancelled: they may fail while nobody reads them. */
export function watched(body: ReadableStream<Uint8Array>, release: () => void): ReadableStream {
  const reader = body.getReader();
  reader.closed.then(release, release);
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
        controller.close();
        controller.byobRequest?.respond(0);
      } catch (error) {
        controller.error(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
