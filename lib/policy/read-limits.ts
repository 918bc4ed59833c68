import type { Algorithm } from '../algorithms/algorithm.js';
import { algorithms, type AlgorithmOptions } from '../algorithms/index.js';
import { duration } from '../algorithms/options.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import type { PolicyLimit } from '../config/policy.js';
import { show } from '../errors/messages.js';
import { policyMessages } from '../errors/policy-messages.js';
import { CompiledLimit } from '../limits/compiled-limit.js';
import type { LimitMode } from '../overrides/override.js';
import { prefetchTerms } from '../rules/prefetch-terms.js';
import { type Located, type LocatedEntry, type Place, showPlace } from './located.js';
import { ALGORITHM_KINDS, LIMIT_KINDS, type OptionKind } from './option-kinds.js';
import type { Problems } from './problems.js';
import { attempt } from './attempt.js';

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
  const read = new Map<string, unknown>();
  for (const entry of entries) {
    if (Object.hasOwn(LIMIT_KINDS, entry.name))
      read.set(entry.name, readOption(entry.value, LIMIT_KINDS[entry.name]!, problems));
  }
  if (problems.list.length > before) return undefined;
  const { mode, ...options } = Object.fromEntries(read) as Partial<LimitDefinition> & { mode?: LimitMode };
  if (options.algo !== undefined) {
    const definition = options as LimitDefinition;
    attempt(at, problems, (location) => compileAlone(definition, name, location));
    if (problems.list.length > before) return undefined;
  }
  const places = new Map(entries.map((entry) => [entry.name, showPlace(entry.place)]));
  return { options: options as Partial<LimitDefinition>, mode, place: showPlace(at), places };
}

/** Reads the value of an option; anything, with a problem, if it is wrong. */
export function readOption(value: Located, kind: OptionKind, problems: Problems): unknown {
  if (kind.options === undefined) {
    if (!kind.isRight(value.value)) problems.add(value.place, policyMessages.wrongValue(value.shown, kind.wants));
    return value.value;
  }
  const { entries } = value;
  if (entries === undefined) {
    problems.add(value.place, policyMessages.wrongValue(value.shown, kind.wants));
    return undefined;
  }
  const read = new Map<string, unknown>();
  for (const entry of entries) {
    if (Object.hasOwn(kind.options, entry.name))
      read.set(entry.name, readOption(entry.value, kind.options[entry.name]!, problems));
    else problems.add(entry.place, policyMessages.unknown(entry.name, Object.keys(kind.options)));
  }
  for (const [name, { wants }] of Object.entries(kind.options)) {
    if (!read.has(name)) problems.add(value.place, policyMessages.missing(name, wants));
  }
  return Object.fromEntries(read);
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

/** Compiles a limit as far as that goes without an app: throws for options that do not go together. */
export function compileAlone(definition: LimitDefinition, name: string, location: string): CompiledLimit {
  const given = Object.entries(definition);
  const options = given.filter(([option]) => option === 'algo' || Object.hasOwn(ALGORITHM_KINDS, option));
  const { blockFor } = definition;
  return new CompiledLimit(Object.fromEntries(options) as unknown as AlgorithmOptions, {
    location,
    name,
    blockFor: blockFor === undefined ? 0 : duration(location, 'blockFor', blockFor),
    prefetch: prefetchTerms(definition, location),
  });
}
