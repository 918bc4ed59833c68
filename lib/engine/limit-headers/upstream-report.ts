/** Headers that look up a value by its name in lower case. */
export interface ResponseHeaders {
  /** The value of a header; several values are joined. */
  get(name: string): string | null;
}

/** A response of an upstream, as parsers get it. */
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

/** The state of one of the upstream's limits, as a response reports it. */
export interface UpstreamLimit {
  /** The upstream's name for the limit, such as `'tokens'`; empty if it has none. */
  readonly name: string;
  /**
   * The unit that the limit counts, such as `'requests'` or `'tokens'`.
   * @default the unit of a call's cost
   */
  readonly unit?: string | undefined;
  /** The quota of a window, if reported. */
  readonly quota?: number | undefined;
  /** The units that are left, if reported. */
  readonly remaining?: number | undefined;
  /** Milliseconds until all units are back, if reported. */
  readonly resetAfterMs?: number | undefined;
  /** The length of its window in milliseconds, if reported. */
  readonly windowMs?: number | undefined;
  /**
   * How units come back: all at once at the reset, or gradually until then.
   * @default 'at-reset'
   */
  readonly refill?: 'at-reset' | 'gradual' | undefined;
}

/** The upstream's limits, as a response reports them. */
export interface UpstreamReport {
  /** The state of each limit; empty if nothing is reported. */
  readonly limits: readonly UpstreamLimit[];
  /** Milliseconds until another call may be made, if reported. */
  readonly retryAfterMs?: number | undefined;
  /**
   * True if a limit rejected the call.
   * @default true for the statuses 429 and 503
   */
  readonly refused?: boolean | undefined;
}

/** Reads the limits that a response reports; `undefined` if it reports none. If the parser throws, nothing is learned. */
export type UpstreamParser = (response: UpstreamResponse) => UpstreamReport | undefined;
