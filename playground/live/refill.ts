/** What an answer told of the units of a limit. */
export interface Units {
  readonly quota: number | undefined;
  readonly left: number;
  /** When it was told, in milliseconds since the epoch. */
  readonly at: number;
  /** In which time the quota comes back bit by bit, in milliseconds; nothing if units come back all at once. */
  readonly refillMs: number | undefined;
  /** When all of it is there again, or, of a limit that refused, when the request fits; in milliseconds since the epoch. */
  readonly until: number;
  /** It refused the last request that it was asked for. */
  readonly refused: boolean;
}

/** The units that a limit has by now, if nothing else takes any. Not whole where they come back bit by bit. */
export function leftAt({ left, quota = left, at, refillMs, until, refused }: Units, now: number): number {
  if (refillMs !== undefined) return Math.min(quota, left + ((now - at) / refillMs) * quota);
  if (now < until) return left;
  // After a refusal the request fits again, which need not be all.
  return refused ? Math.min(quota, Math.max(left, 1)) : quota;
}
