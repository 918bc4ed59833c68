/** Headers, which find a value by its name in lower case. */
export interface ResponseHeaders {
  /** The value of a header; several of them are joined. */
  get(name: string): string | null;
}

/** A response of an upstream, as parsers see it. */
export interface UpstreamResponse {
  /** The HTTP status. */
  readonly status: number;
  /** The headers: those of `fetch`, or anything that finds a value by its name in lower case. */
  readonly headers: ResponseHeaders;
  /** The body, read as JSON, where the parser asked for it; nothing if it is none. */
  readonly body?: unknown;
  /** When the response came: milliseconds since the epoch, on this process's clock. */
  readonly receivedAt: number;
}

/** What an upstream says of one of its limits. */
export interface UpstreamLimit {
  /** The upstream's name of it, such as `'tokens'`; empty if it has none. */
  readonly name: string;
  /**
   * What it counts, such as `'requests'` or `'tokens'`.
   * @default what a call costs
   */
  readonly unit?: string | undefined;
  /** The most units of a window, if that is told. */
  readonly quota?: number | undefined;
  /** The units that are left, if that is told. */
  readonly remaining?: number | undefined;
  /** Milliseconds until all units are there again, if that is told. */
  readonly resetAfterMs?: number | undefined;
  /** The length of its window in milliseconds, if that is told. */
  readonly windowMs?: number | undefined;
  /**
   * Whether units come back all at once at the reset, or little by little until then.
   * @default 'at-reset'
   */
  readonly refill?: 'at-reset' | 'gradual' | undefined;
}

/** What a response says of the upstream's limits. */
export interface UpstreamReport {
  /** What is left of each limit; none if nothing is told. */
  readonly limits: readonly UpstreamLimit[];
  /** Milliseconds until another call may be made, if that is told. */
  readonly retryAfterMs?: number | undefined;
  /**
   * Whether a limit refused the call.
   * @default whether the status is 429 or 503
   */
  readonly refused?: boolean | undefined;
}

/** Reads what a response says of limits; nothing if it says nothing. If it throws, nothing is learnt. */
export type UpstreamParser = (response: UpstreamResponse) => UpstreamReport | undefined;
