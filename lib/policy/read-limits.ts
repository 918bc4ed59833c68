import type { Algorithm } from '../algorithms/algorithm.js';
import { algorithms, type AlgorithmOptions } from '../algorithms/index.js';
import type { ExactLimit } from '../config/limit-definition.js';
import type { PolicyLimit } from '../config/policy.js';
import { show } from '../errors/wording.js';
import { featureTerms } from '../features/index.js';
import { policyMessages } from '../errors/messages/policy.js';
import { blockTerms } from '../limits/block-terms.js';
import { CompiledLimit } from '../limits/compiled-limit.js';
import { reserveTerms } from '../limits/reserve-terms.js';
import type { LimitMode } from '../overrides/override.js';
import { candidateOptions } from '../rules/candidate-options.js';
import { prefetchTerms } from '../rules/prefetch-terms.js';
import { shareTerms } from '../rules/share-terms.js';
import { ALGORITHM_KINDS, CANDIDATE_KINDS } from './algorithm-kinds.js';
import { type Located, type LocatedEntry, type Place, showPlace } from './located.js';
import { COMMON_KINDS, LIMIT_KINDS } from './limit-kinds.js';
import type { Problems } from './problems.js';
import { attempt } from './attempt.js';
import { readOption } from './read-option.js';

/** What a structured field's String can hold, since the name goes into the headers. */
const NAME = /^[\x20-\x7e]{1,128}$/;
export const NAME_WANTS = '1 to 128 printable ASCII characters';

export function isLimitName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name);
}

/** Reads the limits of a policy. What is wrong is left out, and added to the problems. */
export function readLimits(value: Located, problems: Problems): Map<string, PolicyLimit> {
  const limits = new Map<string, PolicyLimit>();
  const { entries } = value;
  if (entries === undefined) {
    problems.add(value.place, policyMessages.wrongValue(value.shown, 'an object of limits by their names'));
  }
  for (const { name, place, value: limit } of entries ?? []) {
    if (!isLimitName(name)) problems.add(place, policyMessages.wrongValue(`the name ${show(name)}`, NAME_WANTS));
    const read = readLimit(limit, place, name, problems);
    if (read !== undefined) limits.set(name, read);
  }
  return limits;
}

function readLimit(value: Located, at: Place, name: string, problems: Problems): PolicyLimit | undefined {
  const before = problems.list.length;
  const { entries } = value;
  if (entries === undefined) {
    problems.add(
      value.place,
      policyMessages.wrongValue(value.shown, "a limit such as { algo: 'gcra', rate: 10, interval: '1s' }"),
    );
    return undefined;
  }
  if (entries.length === 0) problems.add(at, policyMessages.nothingSaid(Object.keys(LIMIT_KINDS).join(', ')));
  const algorithm = algorithms.get(entries.find((entry) => entry.name === 'algo')?.value.value);
  refuseForeignOptions(entries, at, problems, { known: Object.keys(LIMIT_KINDS), algorithm });
  const candidate = entries.find((entry) => entry.name === 'candidate');
  refuseForeignCandidate(candidate, problems, algorithm);
  const read = new Map<string, unknown>();
  for (const entry of entries) {
    if (Object.hasOwn(LIMIT_KINDS, entry.name))
      read.set(entry.name, readOption(entry.value, LIMIT_KINDS[entry.name]!, problems));
  }
  if (problems.list.length > before) return undefined;
  // One that is not wanted takes the place of that in code.
  if (read.get('candidate') === null) read.set('candidate', undefined);
  const { mode, ...options } = Object.fromEntries(read) as Partial<ExactLimit> & { mode?: LimitMode };
  // What is forgotten may be the blocks of code.
  if (options.blockFor !== undefined) attempt(at, problems, (location) => blockTerms(options, location));
  if (options.algo !== undefined) tryAlone(options as ExactLimit, name, { at, candidate }, problems);
  if (problems.list.length > before) return undefined;
  const places = new Map(entries.map((entry) => [entry.name, showPlace(entry.place)]));
  return { options: options as Partial<ExactLimit>, mode, place: showPlace(at), places };
}

/** What options may stand beside each other. */
interface Company {
  readonly known: readonly string[];
  /** The algorithm whose options they are; `undefined` for that of a limit that the policy does not show. */
  readonly algorithm: Algorithm | undefined;
}

/** Refuses options that nobody knows, that are another algorithm's, or that no algorithm has together. */
export function refuseForeignOptions(
  entries: readonly LocatedEntry[],
  place: Place,
  problems: Problems,
  { known, algorithm }: Company,
): void {
  const own = entries.filter(({ name }) => Object.hasOwn(ALGORITHM_KINDS, name) && known.includes(name));
  for (const { name, place: at } of entries) {
    if (known.includes(name)) continue;
    const isForeign = (each: string) =>
      Object.hasOwn(ALGORITHM_KINDS, each) && algorithm?.options.includes(each) === false;
    problems.add(
      at,
      policyMessages.unknown(
        name,
        known.filter((each) => !isForeign(each)),
      ),
    );
  }
  if (algorithm === undefined) {
    const names = own.map(({ name }) => name);
    const fits = algorithms.names.some((each) => names.every((name) => algorithms.get(each)!.options.includes(name)));
    if (!fits) problems.add(place, policyMessages.noCommonAlgorithm(names));
    return;
  }
  for (const { name, place: at } of own) {
    if (algorithm.options.includes(name)) continue;
    problems.add(at, policyMessages.foreign(name, algorithm.name, algorithm.options));
  }
}

/** Refuses options of a candidate that its algorithm does not have, or, if that is not known, no algorithm together. */
export function refuseForeignCandidate(
  entry: LocatedEntry | undefined,
  problems: Problems,
  ofLimit: Algorithm | undefined,
): void {
  const entries = entry?.value.entries;
  if (entry === undefined || entries === undefined) return;
  const algo = entries.find(({ name }) => name === 'algo')?.value.value;
  const algorithm = algo === undefined ? ofLimit : algorithms.get(algo);
  refuseForeignOptions(entries, entry.place, problems, { known: Object.keys(CANDIDATE_KINDS), algorithm });
}

/** Where a limit stands, and its candidate. */
interface LimitPlaces {
  readonly at: Place;
  readonly candidate: LocatedEntry | undefined;
}

/** Compiles a limit as far as that goes without an app, and adds what of it does not go together to the problems. */
export function tryAlone(
  definition: ExactLimit,
  name: string,
  { at, candidate }: LimitPlaces,
  problems: Problems,
): void {
  const given = Object.entries(definition);
  const kept = given.filter(([option]) => option === 'algo' || Object.hasOwn(ALGORITHM_KINDS, option));
  const options = Object.fromEntries(kept) as unknown as AlgorithmOptions;
  const limit = attempt(at, problems, (location) => {
    const instance = definition.scope === 'instance';
    const prefetch = prefetchTerms(definition, location);
    const plan = shareTerms(definition, location);
    return new CompiledLimit(options, {
      location,
      name,
      instance,
      prefetch,
      shared: plan && { floor: plan.floor },
      reserveFor: reserveTerms(definition, location),
      features: featureTerms(definition, location),
    });
  });
  if (limit === undefined) return;
  const compileCandidate = (location: string) => {
    const whole = candidateOptions(definition, definition.candidate, location, Object.keys(COMMON_KINDS));
    return whole && new CompiledLimit(whole, { location: `${location}.candidate`, name });
  };
  attempt(candidate?.place ?? at, problems, compileCandidate, showPlace(at));
}
