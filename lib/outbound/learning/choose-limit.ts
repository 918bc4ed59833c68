import type { UpstreamLimit } from '../headers/upstream-report.js';

/** What a limit of ours learns of. */
export interface LearnTerms {
  /** The names of the upstream's limits, by the names of ours; nothing if that is found out. */
  readonly names: Readonly<Record<string, string>> | undefined;
  /** Whether calls have a cost of their own, and so are no requests that are counted. */
  readonly hasCost: boolean;
}

/** What counts calls, and what counts what no cost of ours is. */
const REQUESTS = 'requests';
const UNLIKE = new Set<string | undefined>([REQUESTS, 'concurrent-requests', 'content-bytes']);

/**
 * Chooses which of the upstream's limits one of ours follows: the one of its name, if names are given; else, of those that count
 * what a call costs, the one with the least left.
 */
export function chooseLimit(
  limits: readonly UpstreamLimit[],
  name: string,
  { names, hasCost }: LearnTerms,
): UpstreamLimit | undefined {
  const told = limits.filter(({ remaining }) => remaining !== undefined);
  if (names !== undefined) {
    const wanted = Object.hasOwn(names, name) ? names[name] : undefined;
    return told.find((limit) => limit.name === wanted);
  }
  const alike = told.filter(({ unit }) => unit === undefined || (hasCost ? !UNLIKE.has(unit) : unit === REQUESTS));
  const tokens = alike.filter(({ unit }) => unit === 'tokens');
  return (tokens.length > 0 ? tokens : alike).reduce<UpstreamLimit | undefined>(
    (least, limit) => (least === undefined || limit.remaining! < least.remaining! ? limit : least),
    undefined,
  );
}

/** Tells the upstream's limits apart: FNV-1a of their names. */
export function windowOf({ name }: UpstreamLimit): number {
  let hash = 0x811c9dc5;
  for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  return hash;
}
