import { type ListName, LISTS } from '../config/list-entry.js';
import type { PolicyListEntry } from '../config/policy.js';
import { listMessages, policyMessages } from '../../engine/errors/messages/rates.js';
import { limitName } from '../../engine/limits/limit-settings.js';
import type { JsonSchema } from '../../engine/options/option-row.js';
import { CAUSE_PATTERN, CAUSE_EXPECTED, isCauseText } from '../overrides/change-options.js';
import { FORMS, isListForm, readForm } from '../overrides/lists/list-options.js';
import { LONGEST_KEY } from '../overrides/override-address.js';
import { type Located, showPlace } from './located.js';
import { entriesOf } from './policy-options.js';
import type { Problems } from './problems.js';
import type { Steps } from './slices.js';

const key = (pattern: string) => ({ type: 'string', pattern, maxLength: LONGEST_KEY });
const LIST = { type: ['array', 'null'], items: { $ref: '#/definitions/entry' } };
const OPTIONS = {
  ip: { description: "An address, or a network such as '10.0.0.0/8'.", type: 'string', minLength: 2 },
  identity: { description: "A key, such as 'tenant:acme'.", ...key('^[^*]+$') },
  pattern: { description: "The beginning of keys, such as 'tenant:*'.", ...key('^[^*]+[*]$') },
  limit: { description: 'The name of a limit. Default: all limits.', ...limitName.schema },
  reason: { description: 'Why it is there.', type: 'string', pattern: CAUSE_PATTERN.replace(/\$$/, '\\n?$') },
};

/** The JSON Schema of the lists of a policy, and of their entries. */
export const listsSchema: JsonSchema = {
  description: "Who is exempt from limits ('allow'), and who is refused ('deny').",
  type: ['object', 'null'],
  properties: Object.fromEntries(LISTS.map((list) => [list, LIST])),
  additionalProperties: false,
};
export const listEntrySchema: JsonSchema = {
  type: 'object',
  properties: OPTIONS,
  additionalProperties: false,
  oneOf: FORMS.map((form) => ({ required: [form], properties: { [form]: true } })),
};

/** Reads the lists of a policy. */
export function* readLists(value: Located, problems: Problems): Steps<PolicyListEntry[]> {
  const known = new Map<string, PolicyListEntry>();
  const lists = entriesOf(value, "an object of the lists 'allow' and 'deny'", problems);
  for (const { name, place, value: list } of lists) {
    if (!LISTS.includes(name as ListName)) problems.add(place, policyMessages.unknown(name, LISTS));
    else yield* readList(name as ListName, list, known, problems);
  }
  return [...known.values()];
}

function* readList(
  list: ListName,
  value: Located,
  known: Map<string, PolicyListEntry>,
  problems: Problems,
): Steps<void> {
  // The list is empty, for example because its last line was removed.
  if (value.value === null) return;
  const { items } = value;
  if (items === undefined) problems.add(value.place, policyMessages.wrongValue(value.shown, 'a list of entries'));
  for (const item of items ?? []) {
    const entry = readEntry(list, item, problems);
    yield;
    if (entry === undefined) continue;
    const address = `${entry.limit}\n${entry.key}`;
    const other = known.get(address);
    if (other !== undefined && other.list !== list) problems.add(item.place, policyMessages.onBothLists(other.place));
    known.set(address, entry);
  }
}

function readEntry(
  list: ListName,
  { place, shown, entries }: Located,
  problems: Problems,
): PolicyListEntry | undefined {
  const before = problems.list.length;
  let key: string | undefined;
  let limit = '';
  let reason: string | undefined;
  let forms = 0;
  for (const { name, place: at, value } of entries ?? []) {
    const wrong = (expected: string) => problems.add(value.place, policyMessages.wrongValue(value.shown, expected));
    if (isListForm(name)) {
      forms++;
      const read = readForm(name, value.value);
      if ('expected' in read) wrong(read.expected);
      else key = read.key;
    } else if (name === 'limit') {
      if (limitName.isValid(value.value)) limit = value.value as string;
      else wrong(`a limit's name: ${limitName.expected}`);
    } else if (name === 'reason') {
      // A folded text in YAML ends with a line feed.
      const text = typeof value.value === 'string' ? value.value.replace(/\n$/, '') : value.value;
      if (isCauseText(text)) reason = text;
      else wrong(CAUSE_EXPECTED);
    } else problems.add(at, policyMessages.unknown(name, Object.keys(OPTIONS)));
  }
  if (problems.list.length > before) return undefined;
  if (key === undefined || forms > 1)
    return problems.add(place, policyMessages.wrongValue(shown, listMessages.listEntryExpected()));
  return { list, key, limit, reason, place: showPlace(place) };
}
