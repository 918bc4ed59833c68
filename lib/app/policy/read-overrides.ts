import { algorithms } from '../../engine/algorithms/index.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import type { PolicyLimit, PolicyOverride } from '../config/policy.js';
import { show } from '../../engine/errors/wording.js';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import { isOverrideKey, LONGEST_KEY } from '../overrides/override-address.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { RatePatch } from '../overrides/override.js';
import { withPatch } from '../overrides/rate-patch.js';
import { type Located, type LocatedEntry, showPlace } from './located.js';
import { entriesOf, overrideOptions } from './policy-options.js';
import type { Problems } from './problems.js';
import { checkName, readTerms, tryAlone } from './read-limits.js';
import type { Steps } from './slices.js';

const KEY_EXPECTED =
  "the key of one identity such as 'tenant:acme', or the beginning of keys with a star at the end such as 'tenant:*', of at most " +
  `${LONGEST_KEY} characters`;
const EXPECTED = 'an object of what an override replaces, such as { rate: 5000 }';

/** Reads the overrides of a policy by limit name and key. `limits` are those of the same policy. */
export function* readOverrides(
  value: Located,
  limits: ReadonlyMap<string, PolicyLimit>,
  problems: Problems,
): Steps<PolicyOverride[]> {
  const overrides: PolicyOverride[] = [];
  const byLimit = entriesOf(value, 'an object of overrides by the names of their limits', problems);
  for (const { name, place, value: keys } of byLimit) {
    checkName(name, place, problems);
    for (const entry of entriesOf(keys, 'an object of overrides by their keys', problems)) {
      const read = readOverride(name, entry, limits.get(name), problems);
      if (read !== undefined) overrides.push(read);
      yield;
    }
  }
  return overrides;
}

function readOverride(
  limit: string,
  { name: key, place, value }: LocatedEntry,
  own: PolicyLimit | undefined,
  problems: Problems,
): PolicyOverride | undefined {
  const before = problems.list.length;
  const { entries } = value;
  if (!isOverrideKey(key)) problems.add(place, policyMessages.wrongValue(`the key ${show(key)}`, KEY_EXPECTED));
  if (entries === undefined) problems.add(value.place, policyMessages.wrongValue(value.shown, EXPECTED));
  if (entries?.length === 0) problems.add(place, policyMessages.nothingSaid(Object.keys(overrideOptions)));
  const algorithm = algorithms.get(own?.options.algo);
  const read = readTerms(entries ?? [], place, problems, { rows: overrideOptions, algorithm });
  if (problems.list.length > before) return undefined;
  const { mode, ...patch } = Object.fromEntries(read) as RatePatch & { mode?: LimitMode };
  if (own !== undefined && algorithm !== undefined) {
    const definition = withPatch(own.options as LimitDefinition, patch);
    tryAlone(definition, limit, { at: place, entries: entries ?? [] }, problems);
    if (problems.list.length > before) return undefined;
  }
  const isPatch = Object.keys(patch).length > 0;
  return {
    limit,
    key,
    patch: (isPatch ? patch : undefined) as PolicyOverride['patch'],
    mode,
    place: showPlace(place),
  };
}
