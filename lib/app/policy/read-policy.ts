import type { Policy, PolicyLimit, PolicyListEntry, PolicyOverride } from '../config/policy.js';
import { listOf } from '../../engine/errors/wording.js';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import type { Located } from './located.js';
import type { PolicyProblem, Problems } from './problems.js';
import { readLimits } from './read-limits.js';
import { readLists } from './read-lists.js';
import { readOverrides } from './read-overrides.js';
import { allAtOnce, inSlices, type Steps } from './slices.js';

/** A policy that is being read. */
interface Draft {
  limits: ReadonlyMap<string, PolicyLimit>;
  overrides: readonly PolicyOverride[];
  lists: readonly PolicyListEntry[];
}

type Section = (value: Located, draft: Draft, problems: Problems) => Steps<void>;

/** The sections of a policy, in the order in which they are read. To add one, add a line here and one in the schema. */
const SECTIONS = new Map<string, Section>([
  [
    'limits',
    function* (value, draft, problems) {
      draft.limits = yield* readLimits(value, problems);
    },
  ],
  [
    'overrides',
    function* (value, draft, problems) {
      draft.overrides = yield* readOverrides(value, draft.limits, problems);
    },
  ],
  [
    'lists',
    function* (value, draft, problems) {
      draft.lists = yield* readLists(value, problems);
    },
  ],
]);

/** A key that is meant for editors. */
const OF_EDITORS = '$schema';

/** The result of reading a source: a valid policy, or its problems. */
export type PolicyReading = { readonly policy: Policy } | { readonly problems: readonly PolicyProblem[] };

/** Reads a policy as a whole. If `value` is undefined, the problems contain the reason. */
export function readPolicy(name: string, value: Located | undefined, problems: Problems): PolicyReading {
  return allAtOnce(reading(name, value, problems));
}

/** The same in slices, between which the rest of the process runs. */
export function readPolicyInSlices(
  name: string,
  value: Located | undefined,
  problems: Problems,
): Promise<PolicyReading> {
  return inSlices(reading(name, value, problems));
}

function* reading(name: string, value: Located | undefined, problems: Problems): Steps<PolicyReading> {
  if (value !== undefined) {
    const draft: Draft = { limits: new Map(), overrides: [], lists: [] };
    yield* readSections(value, draft, problems);
    if (problems.list.length === 0) return { policy: { name, ...draft } };
  }
  return { problems: problems.inOrder };
}

function* readSections(value: Located, draft: Draft, problems: Problems): Steps<void> {
  const { entries } = value;
  const known = [...SECTIONS.keys()];
  if (entries === undefined) {
    problems.add(value.place, policyMessages.wrongValue(value.shown, `an object of ${listOf(known, 'and')}`));
    return;
  }
  for (const { name, place } of entries) {
    if (!SECTIONS.has(name) && name !== OF_EDITORS) problems.add(place, policyMessages.unknown(name, known));
  }
  for (const [name, read] of SECTIONS) {
    const section = entries.find((entry) => entry.name === name)?.value;
    // The section is empty, for example because its last line was removed.
    if (section !== undefined && section.value !== null) yield* read(section, draft, problems);
  }
}
