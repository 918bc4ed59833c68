import type { OutboundOptions } from '../outbound-options.js';

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
