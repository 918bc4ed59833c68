import { policyMessages } from '../errors/messages/policy.js';
import type { Located } from './located.js';
import type { OptionKind } from './option-kind.js';
import type { Problems } from './problems.js';

/** Reads the value of an option; anything, with a problem, if it is wrong. */
export function readOption(value: Located, kind: OptionKind, problems: Problems): unknown {
  if (kind.each !== undefined && value.items !== undefined) return readList(value, kind, kind.each, problems);
  if (kind.named !== undefined && value.entries !== undefined) return readNamed(value, kind, kind.named, problems);
  const isNoObject = kind.isEither === true && value.entries === undefined;
  if (kind.options !== undefined && !isNoObject && !(kind.isPatch === true && value.value === null)) {
    return readObject(value, kind, kind.options, problems);
  }
  if (!kind.isRight(value.value)) refuse(value, kind, problems);
  return value.value;
}

function readList(value: Located, kind: OptionKind, each: OptionKind, problems: Problems): unknown[] {
  const before = problems.list.length;
  const list = (value.items ?? []).map((item) => readOption(item, each, problems));
  if (problems.list.length === before && !kind.isRight(list)) refuse(value, kind, problems);
  return list;
}

function readNamed(value: Located, kind: OptionKind, each: OptionKind, problems: Problems): unknown {
  const before = problems.list.length;
  const read = (value.entries ?? []).map((entry) => [entry.name, readOption(entry.value, each, problems)] as const);
  const whole = Object.fromEntries(read);
  if (problems.list.length === before && !kind.isRight(whole)) refuse(value, kind, problems);
  return whole;
}

function readObject(
  value: Located,
  kind: OptionKind,
  options: Readonly<Record<string, OptionKind>>,
  problems: Problems,
): unknown {
  const { entries } = value;
  const before = problems.list.length;
  const needsAll = kind.isPatch !== true && kind.isPartial !== true;
  const needed = needsAll ? Object.keys(options) : (kind.needs ?? []);
  if (entries === undefined || (!needsAll && entries.length === 0)) {
    refuse(value, kind, problems);
    return undefined;
  }
  const read = new Map<string, unknown>();
  for (const entry of entries) {
    if (Object.hasOwn(options, entry.name))
      read.set(entry.name, readOption(entry.value, options[entry.name]!, problems));
    else problems.add(entry.place, policyMessages.unknown(entry.name, Object.keys(options)));
  }
  for (const name of needed) {
    if (!read.has(name)) problems.add(value.place, policyMessages.missing(name, options[name]!.wants));
  }
  const whole = Object.fromEntries(read);
  if (kind.isPartial === true && problems.list.length === before && !kind.isRight(whole)) refuse(value, kind, problems);
  return whole;
}

function refuse({ place, shown }: Located, { wants }: OptionKind, problems: Problems): void {
  problems.add(place, policyMessages.wrongValue(shown, wants));
}
