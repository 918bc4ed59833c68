import { reasonOf, rethrow } from '../../../engine/errors/reasons.js';
import type { AxiosAnswer, AxiosRequest } from './axios-types.js';
import { isStream } from './bodies.js';
import { namedHeaders } from './named-headers.js';
import { BODY_HEADER, redirectOf, SECRET_HEADER } from './redirects.js';

/** The options of an axios request that concern redirects. */
export interface AxiosRedirects {
  readonly maxRedirects?: number | undefined;
  readonly beforeRedirect?: ((options: Record<string, unknown>, response: object, request: object) => void) | undefined;
  readonly transport?: unknown;
  readonly httpVersion?: unknown;
  readonly auth?: unknown;
  readonly sensitiveHeaders?: string[] | undefined;
  readonly fetchOptions?: object | undefined;
}

type Config = AxiosRequest & AxiosRedirects;

/** The number of redirects that axios follows by default. */
const MOST_REDIRECTS = 21;

/** The number of redirects to follow; 0 if axios itself wouldn't follow any. */
export function mostRedirects({ maxRedirects, transport, httpVersion, fetchOptions }: Config): number {
  const { redirect = 'follow' } = (fetchOptions ?? {}) as { redirect?: unknown };
  if (redirect !== 'follow' || Number(httpVersion) === 2) return 0;
  if (transport !== undefined && transport !== null) return 0;
  return typeof maxRedirects === 'number' && maxRedirects >= 0 ? maxRedirects : MOST_REDIRECTS;
}

/** The same request without following redirects in axios. */
export function withoutRedirects<C extends Config>(config: C): C {
  return { ...config, maxRedirects: 0, fetchOptions: { ...config.fetchOptions, redirect: 'manual' } };
}

/** The request that a redirect leads to; `undefined` if the response isn't a redirect, or if the body can't be sent again. */
export async function redirectedConfig<C extends Config>(config: C, response: AxiosAnswer): Promise<C | undefined> {
  const { status, headers } = response;
  const named = namedHeaders(headers);
  const location = named.get('location');
  if (location === null || status < 300 || status >= 400) return undefined;
  const { default: axios } = await import('axios').catch(rethrow);
  const from = { url: axios.getUri(config as never), method: (config.method ?? 'get').toUpperCase() };
  const { url, method, keepsBody, sameOrigin } = redirectOf(from, status, location);
  if (keepsBody && isStream(config.data)) return undefined;
  const secret = new Set((config.sensitiveHeaders ?? []).map((name) => name.toLowerCase()));
  const isKept = (name: string) =>
    (keepsBody || !BODY_HEADER.test(name)) &&
    (sameOrigin || !(SECRET_HEADER.test(name) || secret.has(name.toLowerCase())));
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
export function asSentWith(config: object, response: AxiosAnswer, error: unknown): void {
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
export function failedWith(config: object, error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'config' in error ? Object.assign(error, { config }) : error;
}

/** The error that axios itself rejects with after too many redirects. */
export function tooManyRedirects(config: object, response: AxiosAnswer): Promise<Error> {
  return axiosError('Maximum number of redirects exceeded', 'ERR_FR_TOO_MANY_REDIRECTS', config, response);
}

/** The error for a redirect to an invalid URL. */
export async function redirectFailed(config: object, response: AxiosAnswer, cause: unknown): Promise<Error> {
  const message = `Redirected request failed: ${reasonOf(cause)}`;
  return Object.assign(await axiosError(message, 'ERR_FR_REDIRECTION_FAILURE', config, response), { cause });
}

async function axiosError(message: string, code: string, config: object, response: AxiosAnswer): Promise<Error> {
  const { default: axios } = await import('axios').catch(rethrow);
  const { request } = response as { request?: object };
  return new axios.AxiosError(message, code, config as never, request);
}
