import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { paced, PacedError, type PacedOptions } from '../../../lib/integrations/client/index.js';
import { LATENCY_MS, MovedCalls } from './moved-calls.js';

const URL_A = 'https://a.example/items';

interface Sent {
  readonly url: string;
  readonly method: string;
  readonly at: number;
  readonly body: string;
}

describe('paced', () => {
  let sent: Sent[];
  /** The server's next response to a call. */
  let respond: (call: Sent) => Response | Promise<Response>;
  let calls: MovedCalls;
  let since: number;

  beforeEach(() => {
    sent = [];
    calls = new MovedCalls(async (input, init) => {
      const request = new Request(input, init);
      const { url, method } = request;
      const call = { url, method, at: performance.now() - since, body: await request.text() };
      sent.push(call);
      return respond(call);
    });
    since = performance.now();
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  const client = (options?: PacedOptions) => paced(calls.fetch, options);
  const ok = (headers: Record<string, string> = {}) => new Response('ok', { headers });
  const refused = (headers: Record<string, string> = {}, status = 429) => new Response('no', { status, headers });
  /** Responses in turn, the last one again and again. */
  const inTurn = (...responses: (() => Response)[]) => {
    let next = 0;
    respond = () => responses[Math.min(next++, responses.length - 1)]!();
  };
  const times = () => sent.map(({ at }) => at);
  /** Calls at the same time, and what became of them. */
  const all = async (promises: Promise<Response>[]) => {
    const settled = Promise.allSettled(promises);
    await calls.during(settled);
    return (await settled).map((result) =>
      result.status === 'fulfilled' ? result.value.status : (result.reason as unknown),
    );
  };

  it('sends one call first, and then as many as are left', async () => {
    let left = 3;
    respond = () => ok({ RateLimit: `"x";r=${--left};t=5` });
    const fetch = client();
    const running = all(Array.from({ length: 3 }, async () => fetch(URL_A)));
    expect(await running).toEqual([200, 200, 200]);
    expect(times()).toEqual([0, LATENCY_MS, LATENCY_MS]);
  });

  it('sends all at once to a server without limits', async () => {
    respond = () => ok();
    const fetch = client();
    await all(Array.from({ length: 20 }, async () => fetch(URL_A)));
    expect(times()).toEqual([0, ...Array.from({ length: 19 }, () => LATENCY_MS)]);
  });

  it('waits until the server allows a call again, and then asks with one', async () => {
    inTurn(
      () => ok({ RateLimit: '"x";r=0;t=5' }),
      () => ok({ RateLimit: '"x";r=1;t=5' }),
    );
    const fetch = client();
    expect(await all(Array.from({ length: 3 }, async () => fetch(URL_A)))).toEqual([200, 200, 200]);
    expect(times()).toEqual([0, 5000 + LATENCY_MS, 5000 + 2 * LATENCY_MS]);
  });

  it('waits for the limit that is used up, of several', async () => {
    inTurn(
      () => ok({ RateLimit: '"burst";r=5;t=1, "day";r=0;t=20' }),
      () => ok({ RateLimit: '"day";r=9;t=100' }),
    );
    const fetch = client();
    await all([fetch(URL_A), fetch(URL_A)]);
    expect(times()).toEqual([0, 20_000 + LATENCY_MS]);
  });

  it('keeps the limits of origins and of paths apart', async () => {
    respond = ({ url }) => (url === URL_A ? ok({ RateLimit: '"x";r=0;t=5' }) : ok());
    const fetch = client();
    await all([fetch(URL_A)]);
    sent.length = 0;
    since = performance.now();
    await all([fetch('https://b.example/items'), fetch('https://a.example/free')]);
    // What was never called may have the limits of its origin.
    expect(times()).toEqual([0, 5000 - LATENCY_MS + LATENCY_MS]);
    sent.length = 0;
    since = performance.now();
    await all([fetch('https://a.example/free'), fetch('https://a.example/free')]);
    expect(times()).toEqual([0, 0]);
  });

  it('sends a call again that was rejected, a little later than the server asked for', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0.5);
    inTurn(
      () => refused({ 'Retry-After': '2' }),
      () => ok(),
    );
    const fetch = client();
    expect(await all([fetch(URL_A, { method: 'PUT', body: 'text' })])).toEqual([200]);
    // By half of a tenth.
    expect(times()).toEqual([0, 2100 + LATENCY_MS]);
    expect(sent.map(({ body }) => body)).toEqual(['text', 'text']);
  });

  it('waits longer and longer if rejections report no time, and then returns one', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    respond = () => refused();
    const fetch = client();
    expect(await all([fetch(URL_A)])).toEqual([429]);
    expect(times()).toEqual([0, 500 + LATENCY_MS, 1500 + 2 * LATENCY_MS]);
  });

  it.each(['1000000000', '99999999999999999999'])('does not send a call again after %s seconds', async (seconds) => {
    respond = () => refused({ 'Retry-After': seconds });
    expect(await all([client()(URL_A)])).toEqual([429]);
    expect(sent).toHaveLength(1);
  });

  it('sends a Request with its body again', async () => {
    inTurn(
      () => refused({ 'Retry-After': '1' }, 503),
      () => ok(),
    );
    const fetch = client();
    expect(await all([fetch(new Request(URL_A, { method: 'PUT', body: 'text' }))])).toEqual([200]);
    expect(sent.map(({ method, body }) => `${method} ${body}`)).toEqual(['PUT text', 'PUT text']);
  });

  it.each<[what: string, init: RequestInit & { duplex?: 'half' }, status: number]>([
    ['a POST', { method: 'POST', body: 'text' }, 429],
    ['a PATCH', { method: 'PATCH', body: 'text' }, 429],
    ['a body that is a stream', { method: 'PUT', body: new Blob(['text']).stream(), duplex: 'half' }, 429],
    ['a 503 without a time', { method: 'GET' }, 503],
    ['a 500', { method: 'GET' }, 500],
  ])('does not send %s again', async (_, init, status) => {
    respond = () => refused(status === 429 ? { 'Retry-After': '1' } : {}, status);
    expect(await all([client()(URL_A, init)])).toEqual([status]);
    expect(sent).toHaveLength(1);
  });

  it('blocks only the path after a rejection that names no limit', async () => {
    respond = ({ url }) => (url.endsWith('/login') ? refused({ 'Retry-After': '30' }) : ok());
    const fetch = client({ attempts: 1 });
    await all([fetch('https://a.example/login'), fetch(URL_A)]);
    sent.length = 0;
    since = performance.now();
    await all([fetch('https://a.example/login', { method: 'GET' }), fetch(URL_A)]);
    expect(times()).toEqual([0, 30_000 - LATENCY_MS]);
    expect(sent[0]!.url).toBe(URL_A);
  });

  it('rejects at once with an error that names the wait, if that is too long', async () => {
    respond = () => ok({ RateLimit: '"day";r=0;t=3600' });
    const fetch = client();
    const [, error] = await all([fetch(URL_A), fetch(URL_A)]);
    expect(error).toBeInstanceOf(PacedError);
    expect(error).toMatchObject({ name: 'PacedError', retryAfterMs: 3_600_000 });
    expect(performance.now() - since).toBeLessThan(1000);
  });

  it('names the wait of a call that is not sent in whole milliseconds', async () => {
    respond = () => ok({ RateLimit: '"day";r=0;t=3600' });
    const fetch = client();
    await all([fetch(URL_A)]);
    await calls.during(new Promise((resolve) => setTimeout(resolve, 10)));
    jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 0.4);
    const error: unknown = await fetch(URL_A).catch((reason: unknown) => reason);
    expect((error as PacedError).retryAfterMs).toBe(3_599_990);
  });

  it('rejects when `maxWait` is over, while others are ahead', async () => {
    respond = () => ok({ RateLimit: '"x";r=0;t=2' });
    const fetch = client({ maxWait: 5000 });
    const results = await all(Array.from({ length: 5 }, async () => fetch(URL_A)));
    expect(results.slice(0, 3)).toEqual([200, 200, 200]);
    expect(results.slice(3)).toEqual([expect.any(PacedError), expect.any(PacedError)]);
  });

  it('honors a signal while a call waits, and gives its turn to the next', async () => {
    inTurn(
      () => ok({ RateLimit: '"x";r=0;t=5' }),
      () => ok({ RateLimit: '"x";r=0;t=5' }),
    );
    const fetch = client();
    const controller = new AbortController();
    const reason = new Error('enough');
    setTimeout(() => controller.abort(reason), 100);
    const results = await all([
      fetch(URL_A),
      fetch(URL_A, { signal: controller.signal }),
      fetch(new Request(URL_A, { signal: AbortSignal.abort(reason) })),
      fetch(URL_A),
    ]);
    expect(results).toEqual([200, reason, reason, 200]);
    expect(times()).toEqual([0, 5000 + LATENCY_MS]);
  });

  it('sends the next call if the first one fails, or takes long', async () => {
    let count = 0;
    respond = () => {
      if (count++ === 0) throw new TypeError('fetch failed');
      return ok();
    };
    const fetch = client();
    expect(await all([fetch(URL_A), fetch(URL_A)])).toEqual([expect.any(TypeError), 200]);
    const silent = paced(async (input, init) => {
      sent.push({ url: URL_A, method: 'GET', at: performance.now() - since, body: '' });
      await new Promise((resolve) => {
        setTimeout(resolve, 10_000);
      });
      return calls.fetch(input, init);
    });
    sent.length = 0;
    since = performance.now();
    await all([silent(URL_A), silent(URL_A)]);
    expect(times().slice(0, 2)).toEqual([0, 2000]);
  });

  it('takes no units of limits that do not count calls', async () => {
    respond = () => ok({ RateLimit: '"b";r=1;t=5', 'RateLimit-Policy': '"b";q=65535;w=10;qu="content-bytes"' });
    const fetch = client();
    await all(Array.from({ length: 5 }, async () => fetch(URL_A)));
    expect(times()).toEqual([0, ...Array.from({ length: 4 }, () => LATENCY_MS)]);
  });

  it('leaves no timer behind when the last waiting call is aborted', async () => {
    respond = () => ok({ RateLimit: '"x";r=0;t=50' });
    const fetch = client();
    await all([fetch(URL_A)]);
    const controller = new AbortController();
    const waiting = fetch(URL_A, { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each<[what: string, body: unknown]>([
    [
      'fails',
      new ReadableStream({
        cancel() {
          throw new Error('reset');
        },
      }),
    ],
    ['never ends', new ReadableStream({ cancel: async () => new Promise<void>(() => undefined) })],
    ['is not a stream of the web', { pipe: () => undefined }],
  ])('sends a rejected call again when discarding the body %s', async (_, body) => {
    const responses = [refused({ 'Retry-After': '1' }), ok()];
    Object.defineProperty(responses[0], 'body', { value: body });
    respond = () => responses[1]!;
    calls.statuses.length = 0;
    let count = 0;
    const fetch = paced(async (input, init) => (count++ === 0 ? responses[0]! : calls.fetch(input, init)));
    expect(await all([fetch(URL_A)])).toEqual([200]);
    expect(count).toBe(2);
  });

  it('remembers an origin that is called, even if many others are', async () => {
    respond = ({ url }) => ok(url === URL_A && sent.length === 1 ? { RateLimit: '"x";r=1000;t=50' } : {});
    const fetch = client();
    await all([fetch(URL_A)]);
    for (let other = 0; other < 150; other++) {
      await all([fetch(`https://${other}.example/`)]);
      if (other % 20 === 0) await all([fetch(URL_A)]);
    }
    sent.length = 0;
    await all([fetch(URL_A), fetch(URL_A), fetch(URL_A)]);
    expect(new Set(times()).size).toBe(1);
  });

  it('waits for the limit of a path regardless of the case of its method', async () => {
    respond = () => ok({ RateLimit: '"x";r=0;t=5' });
    const fetch = client();
    await all([fetch(URL_A, { method: 'get' })]);
    respond = ({ url }) => ok(url === URL_A ? { RateLimit: '"x";r=0;t=5' } : {});
    await all([fetch(URL_A)]);
    expect(times()).toEqual([0, 5000 + LATENCY_MS]);
  });

  it('ignores the signal of a request if the call has `signal: null`', async () => {
    respond = () => ok();
    const request = new Request(URL_A, { signal: AbortSignal.abort() });
    expect(await all([client()(request, { signal: null })])).toEqual([200]);
  });

  it('passes on what it cannot read', async () => {
    await expect(client()('no address')).rejects.toThrow(TypeError);
  });

  it.each([
    [{ maxWait: -1 }, RangeError, 'maxWait: expected a number of milliseconds, received -1'],
    [{ maxWait: NaN }, RangeError, 'maxWait: expected a number of milliseconds, received NaN'],
    [{ maxWait: '10s' }, RangeError, "maxWait: expected a number of milliseconds, received '10s'"],
    [{ maxWait: null }, RangeError, 'maxWait: expected a number of milliseconds, received null'],
    [{ attempts: 0 }, RangeError, 'attempts: expected a whole number >= 1, received 0'],
    [{ attempts: 1.5 }, RangeError, 'attempts: expected a whole number >= 1, received 1.5'],
    [{ attempts: '3' }, RangeError, "attempts: expected a whole number >= 1, received '3'"],
    [{ retries: 3 }, RangeError, "paced: expected the options maxWait and attempts, received 'retries'"],
    [3, TypeError, 'paced: expected an object of options, received 3'],
    [null, TypeError, 'paced: expected an object of options, received null'],
  ])('refuses the options %j', (options, kind, message) => {
    const make = () => paced(fetch, options as never);
    expect(make).toThrow(kind);
    expect(make).toThrow(message);
  });

  it.each([
    [{ maxWait: 1000 }, 'paced: expected a fetch function, received an object; options are the second argument'],
    [3, 'paced: expected a fetch function, received 3'],
    [null, 'paced: expected a fetch function, received null'],
  ])('refuses %j in place of `fetch`', (given, message) => {
    expect(() => paced(given as never)).toThrow(message);
  });

  it('uses the defaults of options that are undefined', () => {
    expect(paced(undefined, { maxWait: undefined, attempts: undefined })).toBeInstanceOf(Function);
    expect(paced(fetch, { maxWait: Infinity })).toBeInstanceOf(Function);
  });
});
