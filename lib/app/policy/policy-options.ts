import { algoOption, algorithms } from '../../engine/algorithms/index.js';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import { type OptionKind, type OptionRows, requiredOf } from '../../engine/options/option-row.js';
import { commonOptionsThat, dataOptions, limitOptions } from '../config/limit-options.js';
import type { Located, LocatedEntry } from './located.js';
import type { Problems } from './problems.js';

/** The options that a policy can set for a limit: all that are plain data. The name is the key of the limit's entry. */
export const policyOptions: OptionRows = dataOptions({ algo: algoOption, ...algorithms.options, ...limitOptions });

const ofKeys = commonOptionsThat(({ live }) => live === 'rate' || live === 'mode');

/** The options that an override can set, which are the ones that `setRate` and `setMode` can change. */
export const overrideOptions: OptionRows = dataOptions({
  ...algorithms.options,
  ...Object.fromEntries(ofKeys.map((option) => [option, limitOptions[option]])),
});

/** The entries of an object; none for anything else, which is reported. */
export function entriesOf(value: Located, expected: string, problems: Problems): readonly LocatedEntry[] {
  const { entries } = value;
  if (entries === undefined) problems.add(value.place, policyMessages.wrongValue(value.shown, expected));
  return entries ?? [];
}

/** Reads the value of an option. If it is invalid, adds a problem; the result is meaningless then. */
export function readOption(value: Located, kind: OptionKind, problems: Problems): unknown {
  const before = problems.list.length;
  const read = readParts(value, kind, problems);
  if (problems.list.length === before && !isValid(value, read, kind)) {
    problems.add(value.place, policyMessages.wrongValue(value.shown, kind.expected));
  }
  return read;
}

function readParts(value: Located, { each, named, options }: OptionKind, problems: Problems): unknown {
  const { entries, items } = value;
  if (each !== undefined && items !== undefined) return items.map((item) => readOption(item, each, problems));
  if (entries === undefined) return value.value;
  if (options !== undefined) return readObject(value, dataOptions(options), problems);
  if (named === undefined) return value.value;
  return Object.fromEntries(entries.map((entry) => [entry.name, readOption(entry.value, named, problems)]));
}

/** A value that isn't an object in the policy may be one in code, such as a map. */
function isValid({ entries }: Located, read: unknown, { options, or, isValid: isWhole }: OptionKind): boolean {
  return options === undefined || entries !== undefined ? isWhole(read) : or?.isValid(read) === true;
}

function readObject({ entries = [], place }: Located, options: OptionRows, problems: Problems): unknown {
  const read = new Map<string, unknown>();
  for (const { name, place: at, value } of entries) {
    const row = Object.hasOwn(options, name) ? options[name] : undefined;
    if (row === undefined) problems.add(at, policyMessages.unknown(name, Object.keys(options)));
    read.set(name, row && readOption(value, row.kind, problems));
  }
  for (const name of requiredOf(options)) {
    if (!read.has(name)) problems.add(place, policyMessages.missing(options[name]!.kind.expected), `.${name}`);
  }
  return Object.fromEntries(read);
}
