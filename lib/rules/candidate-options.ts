import type { Algorithm } from '../algorithms/algorithm.js';
import { asksForAnchor } from '../algorithms/anchor.js';
import { type AlgorithmOptions, algorithms } from '../algorithms/index.js';
import type { CandidateOptions } from '../config/common-limit-options.js';
import type { ExactLimit } from '../config/limit-definition.js';
import { isCommon, optionsOf } from '../config/limit-options.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { planMessages } from '../errors/messages/plan.js';
import { refuseForeignOptions } from '../limits/limit-refusals.js';
import { checkTogether, refuseUnknown } from '../options/check-options.js';
import { isObject } from '../options/values.js';

/** Reads a limit's `candidate`: all options of its algorithm, which checks their values itself. */
export function candidateOptions(
  definition: ExactLimit,
  candidate: unknown,
  location: string,
): AlgorithmOptions | undefined {
  if (candidate === undefined) return undefined;
  const algorithm = algorithms.get(definition.algo);
  // The limit itself is refused.
  if (algorithm === undefined) return undefined;
  if (!isObject(candidate) || isEmpty(candidate)) {
    const names = ['algo', ...Object.keys(algorithm.options)];
    const wants = `an object of at least one of ${names.join(', ')}, such as { rate: 60 }`;
    throw new RateLimitConfigError(messages.wrongOption(location, 'candidate', candidate, wants));
  }
  const within = `${location}.candidate`;
  const { algo } = candidate as CandidateOptions;
  const own = algo === undefined ? algorithm : algorithms.get(algo);
  if (own === undefined) throw new RateLimitConfigError(messages.unknownAlgorithm(within, algo, algorithms.names));
  refuseOthers(candidate, own, within);
  if (asksForAnchor(candidate)) throw new RateLimitConfigError(planMessages.candidateAnchor(within));
  if ((own.leases === undefined) !== (algorithm.leases === undefined)) {
    throw new RateLimitConfigError(messages.candidateHolds(within, own.name, algorithm.name));
  }
  const whole = wholeCandidate(definition, candidate);
  const { candidate: _, ...counted } = definition;
  checkTogether(within, { ...counted, ...whole }, optionsOf(own));
  return whole;
}

/** All options of a candidate: its own, and those of the limit that its algorithm knows. */
export function wholeCandidate(definition: ExactLimit, candidate: CandidateOptions): AlgorithmOptions {
  const algo = candidate.algo ?? definition.algo;
  const known = algorithms.get(algo)?.options ?? {};
  const inherited = Object.entries(definition).filter(([option]) => Object.hasOwn(known, option));
  const whole = Object.assign(Object.create(null) as AlgorithmOptions, Object.fromEntries(inherited));
  return Object.assign(whole, Object.fromEntries(givenEntries(candidate)), { algo });
}

/** All options of a candidate except an anchor from a function: it counts by the same anchor as its limit. */
export function ownCandidate(definition: ExactLimit, candidate: CandidateOptions): CandidateOptions {
  const whole = wholeCandidate(definition, candidate);
  if (!asksForAnchor(whole)) return whole;
  const { anchor: _, ...own } = whole;
  return own;
}

function givenEntries(candidate: object): [string, unknown][] {
  return Object.entries(candidate).filter(([, value]) => value !== undefined);
}

function isEmpty(candidate: object): boolean {
  return givenEntries(candidate).length === 0;
}

/** Refuses options of other algorithms, and those that a limit and its candidate have in common. */
function refuseOthers(candidate: object, algorithm: Algorithm, location: string): void {
  const own = ['algo', ...Object.keys(algorithm.options)];
  const given = Object.fromEntries(givenEntries(candidate));
  const common = Object.keys(given).find(isCommon);
  if (common !== undefined) throw new RateLimitConfigError(messages.sameOfCandidate(location, common, own));
  refuseForeignOptions(given as never, algorithm, location);
  refuseUnknown(location, given, own);
}
