import type { OutboundOptions } from '../outbound-options.js';

/** An axios request as it is sent, as the user's functions see it. */
export interface AxiosRequest {
  /** The method. */
  readonly method?: string | undefined;
  /** The URL as the call gave it. */
  readonly url?: string | undefined;
  /** The prefix of the URL. */
  readonly baseURL?: string | undefined;
  /** The query. */
  readonly params?: unknown;
  /** The headers. */
  readonly headers?: unknown;
  /** The body as it is sent. */
  readonly data?: unknown;
}

/** An axios response, as the user's functions see it. */
export interface AxiosAnswer {
  /** The HTTP status. */
  readonly status: number;
  /** The headers. */
  readonly headers: unknown;
  /** The body as the caller gets it. */
  readonly data: unknown;
}

/** An instance of axios: that of `axios.create()`, `httpService.axiosRef`, or `axios` itself. */
export interface AxiosInstanceLike {
  /** The defaults of its requests. */
  readonly defaults: AxiosDefaultsLike;
}

/** The defaults of an instance of axios. */
export interface AxiosDefaultsLike {
  /** The function that sends requests. */
  adapter?: unknown;
}

/** How calls of axios are limited. */
export type AxiosOptions = OutboundOptions<AxiosRequest, AxiosAnswer>;

/** Limits that can be attached to axios instances. */
export interface LimitedAxios {
  /**
   * Makes all requests of an instance wait for their turn, except those with an `adapter` of their own. Throws
   * `RateLimitConfigError`.
   *
   * @returns a function that detaches the limits
   */
  attach(instance: AxiosInstanceLike): () => void;
}
