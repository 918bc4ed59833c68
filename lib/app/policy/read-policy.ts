import type { Policy, PolicyLimit } from '../config/policy.js';
import { listOf } from '../../engine/errors/wording.js';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import type { Located } from './located.js';
import { entriesOf } from './policy-options.js';
import type { PolicyProblem, Problems } from './problems.js';
import { readLimits } from './read-limits.js';
import { readLists } from './read-lists.js';
import { readOverrides } from './read-overrides.js';
import { allAtOnce, inSlices, type Steps } from './slices.js';

/**
 * The sections of a policy, in the order in which they are read. To add one, add it here, read it in `reading`, and add it to the schema.
 */
const SECTIONS = ['limits', 'overrides', 'lists'] as const;

type Sections = { [Name in (typeof SECTIONS)[number]]?: Located };

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
    const sections = sectionsOf(value, problems);
    const limits = sections.limits ? yield* readLimits(sections.limits, problems) : new Map<string, PolicyLimit>();
    const overrides = sections.overrides ? yield* readOverrides(sections.overrides, limits, problems) : [];
    const lists = sections.lists ? yield* readLists(sections.lists, problems) : [];
    if (problems.list.length === 0) return { policy: { name, limits, overrides, lists } };
  }
  return { problems: problems.inOrder };
}

function sectionsOf(whole: Located, problems: Problems): Sections {
  const sections: Sections = {};
  for (const { name, place, value } of entriesOf(whole, `an object of ${listOf(SECTIONS, 'and')}`, problems)) {
    const section = SECTIONS.find((each) => each === name);
    if (section === undefined && name !== OF_EDITORS) problems.add(place, policyMessages.unknown(name, SECTIONS));
    // An empty section is `null`, for example because its last line was removed.
    if (section !== undefined && value.value !== null) sections[section] ??= value;
  }
  return sections;
}
