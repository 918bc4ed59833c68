import { asksForAnchor } from '../algorithms/anchor.js';
import { type AlgorithmOptions, algorithms } from '../algorithms/index.js';
import type { CandidateOptions } from '../config/common-limit-options.js';
import type { ExactLimit } from '../config/limit-definition.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { planMessages } from '../errors/messages/plan.js';

/**
 * Reads a limit's `candidate`: all options of its algorithm. Their values are the algorithm's to check. `common` are the options
 * that a limit of any algorithm has, and a candidate shares with it.
 */
export function candidateOptions(
  definition: ExactLimit,
  candidate: unknown,
  location: string,
  common: readonly string[],
): AlgorithmOptions | undefined {
  if (candidate === undefined) return undefined;
  const algorithm = algorithms.get(definition.algo);
  // The limit itself is refused.
  if (algorithm === undefined) return undefined;
  if (typeof candidate !== 'object' || candidate === null || Array.isArray(candidate) || isEmpty(candidate)) {
    const wants = `an object of at least one of algo, ${algorithm.options.join(', ')}, such as { rate: 60 }`;
    throw new RateLimitConfigError(messages.wrongOption(location, 'candidate', candidate, wants));
  }
  if (definition.prefetch !== undefined) throw new RateLimitConfigError(messages.candidateWith(location));
  const within = `${location}.candidate`;
  const { algo } = candidate as CandidateOptions;
  const own = algo === undefined ? algorithm : algorithms.get(algo);
  if (own === undefined) throw new RateLimitConfigError(messages.unknownAlgorithm(within, algo, algorithms.names));
  refuseOthers(candidate, own, common, within);
  if (asksForAnchor(candidate)) throw new RateLimitConfigError(planMessages.candidateAnchor(within));
  if ((own.holding === undefined) !== (algorithm.holding === undefined)) {
    throw new RateLimitConfigError(messages.candidateHolds(within, own.name, algorithm.name));
  }
  return wholeCandidate(definition, candidate);
}

/** All options of a candidate: its own, and of the limit's those that its algorithm knows. */
export function wholeCandidate(definition: ExactLimit, candidate: CandidateOptions): AlgorithmOptions {
  const algo = candidate.algo ?? definition.algo;
  const known = algorithms.get(algo)?.options ?? [];
  const inherited = Object.entries(definition).filter(([option]) => known.includes(option));
  const whole = Object.assign(Object.create(null) as AlgorithmOptions, Object.fromEntries(inherited));
  return Object.assign(whole, Object.fromEntries(given(candidate)), { algo });
}

/** All options of a candidate but the anchor that a function gives: it counts by the same anchor as its limit, whatever the limit's is. */
export function ownCandidate(definition: ExactLimit, candidate: CandidateOptions): CandidateOptions {
  const whole = wholeCandidate(definition, candidate);
  if (!asksForAnchor(whole)) return whole;
  const { anchor: _, ...own } = whole;
  return own;
}

function given(candidate: object): [string, unknown][] {
  return Object.entries(candidate).filter(([, value]) => value !== undefined);
}

function isEmpty(candidate: object): boolean {
  return given(candidate).length === 0;
}

/** Refuses options of other algorithms, and those that a limit and its candidate have in common. */
function refuseOthers(
  candidate: object,
  { name, options: own }: { readonly name: string; readonly options: readonly string[] },
  common: readonly string[],
  location: string,
): void {
  for (const [option] of given(candidate)) {
    if (option === 'algo' || own.includes(option)) continue;
    const owners = algorithms.withOption(option);
    if (owners.length > 0) throw new RateLimitConfigError(messages.foreignOption(location, option, name, own, owners));
    const message = common.includes(option) ? messages.sameOfCandidate : messages.unknownOption;
    throw new RateLimitConfigError(message(location, option, ['algo', ...own]));
  }
}
