import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import { algorithms } from '../../engine/algorithms/index.js';
import type { ExactLimit } from '../config/limit-definition.js';
import { checkLimit, optionsOf, refusalOf, secondVersionOf } from '../config/limit-options.js';
import type { PolicyLimit } from '../config/policy.js';
import { show } from '../../engine/errors/wording.js';
import { checkFeatures, secondVersion } from '../../storage/features/options.js';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import { blockTerms } from '../../engine/limits/block-terms.js';
import { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { type LimitMode, limitName } from '../../engine/limits/limit-settings.js';
import type { OptionRows } from '../../engine/options/option-row.js';
import { algorithmOptions } from '../rules/common-options.js';
import { type Located, type LocatedEntry, type Place, showPlace } from './located.js';
import { entriesOf, policyOptions, readOption } from './policy-options.js';
import type { Problems } from './problems.js';
import type { Steps } from './slices.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';

/** Reports an invalid limit name. */
export function checkName(name: string, place: Place, problems: Problems): void {
  if (!limitName.isValid(name))
    problems.add(place, policyMessages.wrongValue(`the name ${show(name)}`, limitName.expected));
}

/** Reads the limits of a policy. Invalid ones are left out and reported as problems. */
export function* readLimits(value: Located, problems: Problems): Steps<Map<string, PolicyLimit>> {
  const limits = new Map<string, PolicyLimit>();
  for (const { name, place, value: limit } of entriesOf(value, 'an object of limits by their names', problems)) {
    checkName(name, place, problems);
    const read = readLimit(limit, place, name, problems);
    if (read !== undefined) limits.set(name, read);
    yield;
  }
  return limits;
}

function readLimit(value: Located, at: Place, name: string, problems: Problems): PolicyLimit | undefined {
  const before = problems.list.length;
  const { entries } = value;
  if (entries === undefined) {
    return problems.add(
      value.place,
      policyMessages.wrongValue(value.shown, "a limit such as { algo: 'gcra', rate: 10, interval: '1s' }"),
    );
  }
  if (entries.length === 0) problems.add(at, policyMessages.nothingSaid(Object.keys(policyOptions)));
  const algorithm = algorithms.get(entries.find((entry) => entry.name === 'algo')?.value.value);
  const read = readTerms(entries, at, problems, { rows: policyOptions, algorithm });
  if (problems.list.length > before) return undefined;
  // `null` removes an option that the limit in code has.
  for (const [option, value] of read) if (value === null) read.set(option, undefined);
  const { mode, ...options } = Object.fromEntries(read) as Partial<ExactLimit> & { mode?: LimitMode };
  // `forgetAfter` may refer to the `blockFor` of the limit in code.
  if (options.blockFor !== undefined) attempt(at, problems, (location) => blockTerms(options, location));
  if (options.algo !== undefined) tryAlone(options as ExactLimit, name, { at, entries }, problems);
  else attempt(at, problems, (location) => checkFeatures(options, undefined, location));
  if (problems.list.length > before) return undefined;
  const places = new Map(entries.map((entry) => [entry.name, showPlace(entry.place)]));
  return { options: options as Partial<ExactLimit>, mode, place: showPlace(at), places };
}

/** The rules that determine which options can be combined. */
interface Company {
  readonly rows: OptionRows;
  /** The algorithm that the options belong to; `undefined` if the policy replaces options of a limit without naming its algorithm. */
  readonly algorithm: Algorithm | undefined;
}

/** Reads options. Reports unknown ones, options of other algorithms and invalid combinations, including those in nested options. */
export function readTerms(
  entries: readonly LocatedEntry[],
  place: Place,
  problems: Problems,
  company: Company,
): Map<string, unknown> {
  refuseForeign(entries, place, problems, company);
  for (const { name, place: at, value } of entries) {
    const kind = Object.hasOwn(company.rows, name) ? company.rows[name]!.kind : undefined;
    if (kind?.isOfAlgorithm !== true || value.entries === undefined) continue;
    const algo = value.entries.find((entry) => entry.name === 'algo')?.value.value;
    const algorithm = algo === undefined ? company.algorithm : algorithms.get(algo);
    refuseForeign(value.entries, at, problems, { rows: kind.options!, algorithm });
  }
  const read = new Map<string, unknown>();
  for (const { name, value } of entries) {
    if (Object.hasOwn(company.rows, name)) read.set(name, readOption(value, company.rows[name]!.kind, problems));
  }
  return read;
}

function refuseForeign(
  entries: readonly LocatedEntry[],
  place: Place,
  problems: Problems,
  { rows, algorithm }: Company,
): void {
  const isKnown = (name: string) => Object.hasOwn(rows, name);
  const known = Object.keys(rows).filter((name) => name === 'algo' || algorithm === undefined || has(algorithm, name));
  for (const { name, place: at } of entries) {
    if (!isKnown(name)) problems.add(at, policyMessages.unknown(name, known));
    else if (!known.includes(name)) problems.add(at, refusalOf(name, algorithm!));
  }
  if (algorithm !== undefined) return;
  const own = entries.map(({ name }) => name).filter((name) => isKnown(name) && name !== 'algo');
  if (algorithms.namesOf((each) => own.every((name) => has(each, name))).length > 0) return;
  problems.add(place, policyMessages.noCommonAlgorithm(own));
}

function has(algorithm: Algorithm, option: string): boolean {
  return Object.hasOwn(optionsOf(algorithm), option);
}

interface LimitPlaces {
  readonly at: Place;
  readonly entries: readonly LocatedEntry[];
}

/** Compiles a limit as far as possible without an app, and reports options that can't be combined. */
export function tryAlone(definition: ExactLimit, name: string, { at, entries }: LimitPlaces, problems: Problems): void {
  const option = secondVersion?.option;
  const limit = attempt(at, problems, (location) => {
    const own: ExactLimit = { ...definition, ...(option !== undefined && { [option]: undefined }) };
    checkLimit(own, location, true);
    const compiled = new CompiledLimit(algorithmOptions(definition), {
      location,
      name,
      instance: own.scope === 'instance',
    });
    checkFeatures(own, compiled, location);
    return compiled;
  });
  if (limit === undefined) return;
  const compileSecond = (location: string) => {
    checkLimit(definition, location, true);
    const whole = secondVersionOf(definition, location);
    return whole && new CompiledLimit(whole, { location: `${location}.${option}`, name });
  };
  const place = entries.find((entry) => entry.name === option)?.place ?? at;
  attempt(place, problems, compileSecond, showPlace(at));
}

/**
 * Calls a function that may throw `RateLimitConfigError`, with a location, and reports the error as a problem of that place. Messages may
 * refer to a part of the location.
 */
function attempt<T>(
  place: Place,
  problems: Problems,
  call: (location: string) => T,
  location = showPlace(place),
): T | undefined {
  try {
    return call(location);
  } catch (error) {
    if (!(error instanceof RateLimitConfigError)) throw error;
    const { message } = error;
    const [, within, here] = (message.startsWith(location) && OF_PART.exec(message.slice(location.length))) || [];
    return problems.add(
      place,
      here ?? message,
      location === showPlace(place) ? within : withoutEnd(within, place.path),
    );
  }
}

/** Matches the part of a location that a message refers to, and the rest of the message: `.rate: expected ...`. */
const OF_PART = /^(.*?): (.*)$/s;

/** The part of a location without the beginning that repeats the end of the place's path. */
function withoutEnd(within: string | undefined, path: string): string | undefined {
  const steps = within?.match(/\.[^.[]+|\[[^\]]*\]/g) ?? [];
  const known = steps
    .map((_, index) => steps.slice(0, steps.length - index).join(''))
    .find((each) => path.endsWith(each));
  return within?.slice(known?.length ?? 0);
}
