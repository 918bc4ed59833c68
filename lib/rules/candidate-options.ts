import { type AlgorithmOptions, algorithms } from '../algorithms/index.js';
import type { CandidateOptions, LimitDefinition } from '../config/limit-definition.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';

/** Reads a limit's `candidate`: all options of its algorithm. Their values are the algorithm's to check. */
export function candidateOptions(
  definition: LimitDefinition,
  candidate: unknown,
  location: string,
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
  refuseOthers(candidate, own.name, own.options, within);
  if ((own.holding === undefined) !== (algorithm.holding === undefined)) {
    throw new RateLimitConfigError(messages.candidateHolds(within, own.name, algorithm.name));
  }
  return wholeCandidate(definition, candidate);
}

/** All options of a candidate: its own, and of the limit's those that its algorithm knows. */
export function wholeCandidate(definition: LimitDefinition, candidate: CandidateOptions): AlgorithmOptions {
  const algo = candidate.algo ?? definition.algo;
  const known = algorithms.get(algo)?.options ?? [];
  const inherited = Object.entries(definition).filter(([option]) => known.includes(option));
  const whole = Object.assign(Object.create(null) as AlgorithmOptions, Object.fromEntries(inherited));
  return Object.assign(whole, Object.fromEntries(given(candidate)), { algo });
}

function given(candidate: object): [string, unknown][] {
  return Object.entries(candidate).filter(([, value]) => value !== undefined);
}

function isEmpty(candidate: object): boolean {
  return given(candidate).length === 0;
}

/** Refuses options of other algorithms, and those that a limit and its candidate have in common. */
function refuseOthers(candidate: object, algo: string, own: readonly string[], location: string): void {
  for (const [option] of given(candidate)) {
    if (option === 'algo' || own.includes(option)) continue;
    const owners = algorithms.withOption(option);
    throw new RateLimitConfigError(
      owners.length > 0
        ? messages.foreignOption(location, option, algo, own, owners)
        : messages.sameOfCandidate(location, option, ['algo', ...own]),
    );
  }
}
