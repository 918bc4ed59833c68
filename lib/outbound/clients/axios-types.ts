import type { OutboundOptions } from '../outbound-options.js';

/** What functions see of a request of axios, as it is sent. */
export interface AxiosRequest {
  /** The method. */
  readonly method?: string | undefined;
  /** The URL, as the call gave it. */
  readonly url?: string | undefined;
  /** What stands before the URL. */
  readonly baseURL?: string | undefined;
  /** The query. */
  readonly params?: unknown;
  /** The headers. */
  readonly headers?: unknown;
  /** The body, as it is sent. */
  readonly data?: unknown;
}

/** What functions see of a response of axios. */
export interface AxiosAnswer {
  /** The HTTP status. */
  readonly status: number;
  /** The headers. */
  readonly headers: unknown;
  /** The body, as the caller gets it. */
  readonly data: unknown;
}

/** An instance of axios: that of `axios.create()`, `httpService.axiosRef`, or `axios` itself. */
export interface AxiosInstanceLike {
  /** The defaults of its requests. */
  readonly defaults: AxiosDefaultsLike;
}

/** The defaults of an instance of axios. */
export interface AxiosDefaultsLike {
  /** What sends requests. */
  adapter?: unknown;
}

/** How calls of axios are limited. */
export type AxiosOptions = OutboundOptions<AxiosRequest, AxiosAnswer>;

/** Limits that instances of axios can be given. */
export interface LimitedAxios {
  /**
   * Has all requests of an instance wait for their turn, except those with an `adapter` of their own. Throws `RateLimitConfigError`.
   *
   * @returns what ends it
   */
  attach(instance: AxiosInstanceLike): () => void;
}
