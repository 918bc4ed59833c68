import type { UpstreamLimit } from '../headers/upstream-report.js';

/** What decides which of the upstream's limits one of ours follows. */
export interface LearnTerms {
  /** The names of the upstream's limits, by the names of ours; `undefined` to choose automatically. */
  readonly names: Readonly<Record<string, string>> | undefined;
  /** Whether calls have a cost of their own, and so do not count as requests. */
  readonly hasCost: boolean;
}

/** The unit of limits that count calls, and the units that no cost of ours can be in. */
const REQUESTS = 'requests';
const UNLIKE = new Set<string | undefined>([REQUESTS, 'concurrent-requests', 'content-bytes']);

/**
 * Chooses which of the upstream's limits one of ours follows: the one with the given name, if names are given; else the one with
 * the least left, of those that count what a call costs.
 */
export function chooseLimit(
  limits: readonly UpstreamLimit[],
  name: string,
  { names, hasCost }: LearnTerms,
): UpstreamLimit | undefined {
  const reported = limits.filter(({ remaining }) => remaining !== undefined);
  if (names !== undefined) {
    const wanted = Object.hasOwn(names, name) ? names[name] : undefined;
    return reported.find((limit) => limit.name === wanted);
  }
  const alike = reported.filter(({ unit }) => unit === undefined || (hasCost ? !UNLIKE.has(unit) : unit === REQUESTS));
  const tokens = alike.filter(({ unit }) => unit === 'tokens');
  return (tokens.length > 0 ? tokens : alike).reduce<UpstreamLimit | undefined>(
    (least, limit) => (least === undefined || limit.remaining! < least.remaining! ? limit : least),
    undefined,
  );
}

/** An id that distinguishes the upstream's limits: FNV-1a of their names. */
export function windowOf({ name }: UpstreamLimit): number {
  let hash = 0x811c9dc5;
  for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  return hash;
}
