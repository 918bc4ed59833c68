/** Headers that look up a value by its name in lower case. */
export interface ResponseHeaders {
  /** The value of a header; several values are joined. */
  get(name: string): string | null;
}

/** A response of an upstream, as parsers see it. */
export interface UpstreamResponse {
  /** The HTTP status. */
  readonly status: number;
  /** The headers: those of `fetch`, or any object that looks up a value by its name in lower case. */
  readonly headers: ResponseHeaders;
  /** The body as parsed JSON, if the parser asked for it; `undefined` if it is not JSON. */
  readonly body?: unknown;
  /** When the response came: milliseconds since the epoch by this process's clock. */
  readonly receivedAt: number;
}

/** What an upstream reports of one of its limits. */
export interface UpstreamLimit {
  /** The upstream's name for it, such as `'tokens'`; empty if it has none. */
  readonly name: string;
  /**
   * What it counts, such as `'requests'` or `'tokens'`.
   * @default what a call costs
   */
  readonly unit?: string | undefined;
  /** The most units of a window, if reported. */
  readonly quota?: number | undefined;
  /** The units that are left, if reported. */
  readonly remaining?: number | undefined;
  /** Milliseconds until all units are back, if reported. */
  readonly resetAfterMs?: number | undefined;
  /** The length of its window in milliseconds, if reported. */
  readonly windowMs?: number | undefined;
  /**
   * Whether units come back all at once at the reset, or gradually until then.
   * @default 'at-reset'
   */
  readonly refill?: 'at-reset' | 'gradual' | undefined;
}

/** What a response reports of the upstream's limits. */
export interface UpstreamReport {
  /** What is left of each limit; empty if nothing is reported. */
  readonly limits: readonly UpstreamLimit[];
  /** Milliseconds until another call may be made, if reported. */
  readonly retryAfterMs?: number | undefined;
  /**
   * Whether a limit refused the call.
   * @default whether the status is 429 or 503
   */
  readonly refused?: boolean | undefined;
}

/** Reads what a response reports of limits; `undefined` if it reports nothing. If it throws, nothing is learnt. */
export type UpstreamParser = (response: UpstreamResponse) => UpstreamReport | undefined;
