import { isRecord } from '../../../engine/util/objects.js';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { outboundMessages } from '../../../engine/errors/messages/outbound.js';
import { reasonOf, rethrow } from '../../../engine/errors/reasons.js';
import type { Answered, OutboundCaller, Permit } from '../outbound-call.js';
import type { OutboundOptions } from '../outbound-options.js';
import { isJson, isStream, jsonOf, namedHeaders, redirectOf, watched } from './requests-and-responses.js';

/** An axios request, as the app's functions get it. */
export interface AxiosRequest {
  /** The method. */
  readonly method?: string | undefined;
  /** The URL, as passed to axios. */
  readonly url?: string | undefined;
  /** The prefix of the URL. */
  readonly baseURL?: string | undefined;
  /** The query. */
  readonly params?: unknown;
  /** The headers. */
  readonly headers?: unknown;
  /** The body, as it is sent. */
  readonly data?: unknown;
}

/** An axios response, as the app's functions get it. */
export interface AxiosAnswer {
  /** The HTTP status. */
  readonly status: number;
  /** The headers. */
  readonly headers: unknown;
  /** The body, as the caller gets it. */
  readonly data: unknown;
}

/** An axios instance: `axios.create()`, `httpService.axiosRef`, or `axios` itself. */
export interface AxiosInstanceLike {
  /** The defaults of its requests. */
  readonly defaults: AxiosDefaultsLike;
}

/** The defaults of an axios instance. */
export interface AxiosDefaultsLike {
  /** The function that sends requests. */
  adapter?: unknown;
}

/** How axios calls are limited. */
export type AxiosOptions = OutboundOptions<AxiosRequest, AxiosAnswer>;

/** Limits that can be attached to axios instances. */
export interface LimitedAxios {
  /**
   * Makes all requests of an instance wait for their turn, except requests with their own `adapter`. Throws `RateLimitConfigError`.
   *
   * @returns a function that detaches the limits
   */
  attach(instance: AxiosInstanceLike): () => void;
}

type Config = AxiosRequest & { readonly signal?: AbortSignal | undefined } & AxiosRedirects;
type Adapter = (config: Config) => Promise<AxiosAnswer>;
type Caller = OutboundCaller<AxiosRequest, AxiosAnswer>;

/** The adapters created here. They follow redirects, unless the request disables that. */
const ours = new WeakSet<Adapter>();

/** The outcome of sending a request once: axios rejects for statuses that the caller does not accept. */
interface Outcome {
  readonly response: AxiosAnswer;
  /** The error with this response. */
  readonly error?: unknown;
}

/** Makes the requests of axios instances wait for their turn. It replaces the adapter, which gets each request in its final form. */
export function limitedAxios(caller: Caller): LimitedAxios {
  return {
    attach: (instance) => {
      if (!isInstance(instance)) throw new RateLimitConfigError(outboundMessages.noAxios(instance));
      const { defaults } = instance;
      const before = defaults.adapter;
      let isAttached = true;
      const adapter: Adapter = async (config) => {
        const send = await adapterOf(before, config);
        if (!isAttached) return send(config);
        // An adapter of the app handles redirects itself.
        const follows = typeof before !== 'function' || ours.has(before as Adapter);
        return follows ? sendFollowing(caller, send, config) : handOn(await sendLimited(caller, send, config), caller);
      };
      ours.add(adapter);
      defaults.adapter = adapter;
      return () => {
        isAttached = false;
        if (defaults.adapter === adapter) defaults.adapter = before;
      };
    },
  };
}

/** Sends a request, and follows redirects. Each of these requests is limited separately. */
async function sendFollowing(caller: Caller, send: Adapter, given: Config): Promise<AxiosAnswer> {
  const most = mostRedirects(given);
  if (most === 0) return handOn(await sendLimited(caller, send, given), caller);
  const since = performance.now();
  // Axios itself follows none.
  let config: Config = { ...given, maxRedirects: 0, fetchOptions: { ...given.fetchOptions, redirect: 'manual' } };
  for (let redirects = 0; ; redirects++) {
    const sent = await sendLimited(caller, send, config, since).catch((error: unknown) => {
      throw failedWith(given, error);
    });
    const { response, error } = sent.answer;
    const end = () => {
      discard(response.data);
      return sent.permit.release();
    };
    const next = await redirectedConfig(config, response).catch(async (cause: unknown) => {
      await end();
      const message = `Redirected request failed: ${reasonOf(cause)}`;
      throw Object.assign(await axiosError(message, 'ERR_FR_REDIRECTION_FAILURE', given, response), { cause });
    });
    if (next === undefined) {
      asSentWith(given, response, error);
      return handOn(sent, caller);
    }
    await end();
    if (redirects === most) {
      throw await axiosError('Maximum number of redirects exceeded', 'ERR_FR_TOO_MANY_REDIRECTS', given, response);
    }
    config = next;
  }
}

async function sendLimited(caller: Caller, send: Adapter, config: Config, since?: number): Promise<Answered<Outcome>> {
  const call = await caller.call(() => config, config.signal, since);
  const sent = {
    method: config.method ?? 'GET',
    hasKey: namedHeaders(config.headers).get('idempotency-key') !== null,
    canRepeat: !isStream(config.data),
  };
  return call.exchange(sent, {
    send: () => sendOnce(send, config),
    read: ({ response: { status, headers, data } }) => {
      const named = namedHeaders(headers);
      const body = caller.settings.readsBody && isJson(named) ? jsonOf(data) : undefined;
      return { status, headers: named, body, receivedAt: Date.now() };
    },
    discard: ({ response }) => discard(response.data),
  });
}

function discard(data: unknown): void {
  if (data instanceof ReadableStream) data.cancel().catch(() => undefined);
  else if (isStream(data)) (data as { destroy?: () => void }).destroy?.();
}

async function sendOnce(send: Adapter, config: Config): Promise<Outcome> {
  try {
    return { response: await send(config) };
  } catch (error) {
    const response = (error as { response?: AxiosAnswer } | undefined)?.response;
    if (response !== undefined) return { response, error };
    throw error;
  }
}

function handOn({ answer: { response, error }, permit }: Answered<Outcome>, caller: Caller): AxiosAnswer {
  if (caller.settings.settle !== undefined) settleSoon(response, permit, caller);
  const { data } = response;
  if (permit.holds && data instanceof ReadableStream) {
    Object.assign(response, { data: watched(data, () => void permit.release()) });
  } else if (permit.holds && isStream(data)) {
    (data as NodeJS.ReadableStream).once('close', () => void permit.release());
  } else void permit.release();
  if (error !== undefined) throw error;
  return response;
}

/**
 * Settles a call after axios has read the body, which it does once it has the response. This is a function of its own because the functions
 * that release units must not keep the response: its stream could not be garbage-collected.
 */
function settleSoon(response: AxiosAnswer, permit: Permit, caller: Caller): void {
  setImmediate(() => void caller.settle(permit, () => response));
}

/** The adapter that an instance had before: a function, or names of adapters built into axios. */
async function adapterOf(adapter: unknown, config: Config): Promise<Adapter> {
  if (typeof adapter === 'function') return adapter as Adapter;
  const { default: axios } = await import('axios').catch(rethrow);
  return axios.getAdapter(adapter as 'http', config as never) as Adapter;
}

function isInstance(instance: unknown): instance is AxiosInstanceLike {
  const isObject = typeof instance === 'function' || isRecord(instance);
  return isObject && isRecord((instance as Partial<AxiosInstanceLike>).defaults);
}

interface AxiosRedirects {
  readonly maxRedirects?: number | undefined;
  readonly beforeRedirect?: ((options: Record<string, unknown>, response: object, request: object) => void) | undefined;
  readonly transport?: unknown;
  readonly httpVersion?: unknown;
  readonly auth?: unknown;
  readonly sensitiveHeaders?: string[] | undefined;
  readonly fetchOptions?: object | undefined;
}

/** The number of redirects that axios follows by default. */
const MOST_REDIRECTS = 21;

/** The number of redirects to follow; 0 if axios itself wouldn't follow any. */
function mostRedirects({ maxRedirects, transport, httpVersion, fetchOptions }: Config): number {
  const { redirect = 'follow' } = (fetchOptions ?? {}) as { redirect?: unknown };
  if (redirect !== 'follow' || Number(httpVersion) === 2) return 0;
  if (transport !== undefined && transport !== null) return 0;
  return typeof maxRedirects === 'number' && maxRedirects >= 0 ? maxRedirects : MOST_REDIRECTS;
}

/** The request that a redirect leads to; `undefined` if the response isn't a redirect, or if the body can't be sent again. */
async function redirectedConfig(config: Config, response: AxiosAnswer): Promise<Config | undefined> {
  const { status, headers } = response;
  const named = namedHeaders(headers);
  const location = named.get('location');
  if (location === null || status < 300 || status >= 400) return undefined;
  const { default: axios } = await import('axios').catch(rethrow);
  const from = { url: axios.getUri(config as never), method: (config.method ?? 'get').toUpperCase() };
  const { url, method, keepsBody, sameOrigin, keepsHeader } = redirectOf(from, status, location);
  if (keepsBody && isStream(config.data)) return undefined;
  const secret = new Set((config.sensitiveHeaders ?? []).map((name) => name.toLowerCase()));
  const isKept = (name: string) => keepsHeader(name) && (sameOrigin || !secret.has(name.toLowerCase()));
  const sent = Object.entries({ ...(config.headers as object) });
  const next: Record<string, unknown> = Object.fromEntries(sent.filter(([name]) => isKept(name)));
  const auth = sameOrigin ? config.auth : undefined;
  // Apps change headers in this hook, or throw.
  const { href, hostname, host, port, protocol, pathname, search } = url;
  const options = { href, hostname, host, port, protocol, path: pathname + search, method, headers: next };
  const details = {
    headers: Object.fromEntries(
      Object.keys({ ...(headers as object) }).map((name) => [name.toLowerCase(), named.get(name.toLowerCase())]),
    ),
    statusCode: status,
  };
  config.beforeRedirect?.(options, details, { ...from, headers: Object.fromEntries(sent) });
  const { AxiosHeaders } = axios;
  const changed = { url: href, baseURL: undefined, params: undefined, method, auth };
  const body = keepsBody ? {} : { data: undefined };
  return { ...config, ...changed, ...body, headers: AxiosHeaders.from(options.headers as never) };
}

/** Sets the request of a response or an error to the app's request, and its URL to the one that answered. */
function asSentWith(config: object, response: AxiosAnswer, error: unknown): void {
  const { request } = response as { request?: { res?: { responseUrl?: string }; protocol?: string; path?: string } };
  Object.assign(response, { config });
  if (typeof error === 'object' && error !== null) Object.assign(error, { config });
  const host = (request as { getHeader?: (name: string) => unknown } | undefined)?.getHeader?.('host');
  if (request?.res === undefined || request.res.responseUrl !== undefined || typeof host !== 'string') return;
  try {
    request.res.responseUrl = new URL(request.path ?? '/', `${request.protocol ?? 'http:'}//${host}`).href;
  } catch {
    // The request has something other than a URL, so leave it out.
  }
}

/** Sets the request of an error after a redirect to the app's request, so that a retry starts there. */
function failedWith(config: object, error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'config' in error ? Object.assign(error, { config }) : error;
}

/** The error that axios itself rejects with. */
async function axiosError(message: string, code: string, config: object, response: AxiosAnswer): Promise<Error> {
  const { default: axios } = await import('axios').catch(rethrow);
  const { request } = response as { request?: object };
  return new axios.AxiosError(message, code, config as never, request);
}
