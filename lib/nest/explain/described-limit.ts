import { isDeepStrictEqual } from 'node:util';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CurrentMode, CurrentRate } from '../../app/overrides/override.js';
import { nameOfKey } from '../../app/key-resolvers/index.js';
import type { Overrides } from '../../app/overrides/overrides.js';
import { ownIdentity, shownIdentity } from '../../engine/limits/hierarchy.js';
import type { Rule } from '../../app/rules/rule.js';
import { keyOf } from '../../storage/stores/redis/keys.js';
import type { AskedLimit } from './asked-limit.js';
import type { CounterReading } from './counter-reader.js';
import type {
  ExplainedCandidate,
  ExplainedKey,
  ExplainedLimit,
  ExplainedMode,
  ExplainedRate,
  ExplainedShare,
} from './explanation.js';
import { jsonCopy } from '../../engine/util/objects.js';
import type { TracedRule } from './trace.js';

/** The full description of a limit. `prefix`: that of every counter's key on Redis. */
export function describe(
  { rule, origin, replaces }: TracedRule,
  asked: AskedLimit,
  { state, decision, unread, ofCandidate }: CounterReading & { ofCandidate: CounterReading },
  overrides: Overrides,
  prefix: string,
): ExplainedLimit {
  const { limit, identity, status, reason = unread, cost, list } = asked;
  const known = overrides.known(rule, identity === undefined ? undefined : ownIdentity({ limit, identity }));
  const { onStoreError } = limit;
  return {
    name: rule.name,
    origin,
    replaces,
    ...(origin.level === 'code' || origin.level === 'defined' ? {} : { phase: rule.phase }),
    status,
    ...given('reason', reason),
    rate: rateOf(rule, limit, known?.rate),
    mode: modeOf(limit, known?.mode),
    quota: state?.quota ?? limit.quota,
    key: keyOfLimit(rule, asked, prefix),
    ...given('share', shareOf(rule, asked)),
    ...given('cost', cost),
    ...given('list', list && jsonCopy(list)),
    ...given('blockForMs', blocksOf(limit)),
    ...(limit.strikes ? { strike: true } : {}),
    ...(unread === undefined ? {} : { onStoreError: typeof onStoreError === 'function' ? 'a function' : onStoreError }),
    ...given('state', state),
    ...given('decision', decision),
    ...given('candidate', limit.candidate && candidateOf(limit.candidate, ofCandidate)),
  };
}

function candidateOf({ options, quota }: CompiledLimit, { state, decision }: CounterReading): ExplainedCandidate {
  return { options: jsonCopy(options), quota, ...given('state', state), ...given('decision', decision) };
}

function blocksOf({ blockFor, escalation }: CompiledLimit): number | number[] | undefined {
  if (escalation !== undefined) return escalation.steps.map((step) => step / 1000);
  return blockFor > 0 ? blockFor / 1000 : undefined;
}

function rateOf(rule: Rule, { options: current }: CompiledLimit, known: CurrentRate | undefined): ExplainedRate {
  const { source = 'configured', override, policy } = known ?? {};
  const options = jsonCopy(current);
  const configured = jsonCopy(rule.configured.options);
  if (override !== undefined) return { options, source, configured, override: jsonCopy(override) };
  if (policy === undefined) return { options, source };
  // Values that the policy sets for the limit count as configured; those it sets for a key do not.
  return { options, source, ...(isDeepStrictEqual(options, configured) ? {} : { configured }), policy };
}

function modeOf({ mode }: CompiledLimit, known: CurrentMode | undefined): ExplainedMode {
  const { source = 'configured', override, policy } = known ?? {};
  // The environment variable that puts every limit into shadow mode has precedence over overrides.
  return { mode, source, ...given('override', override && jsonCopy(override)), ...given('policy', policy) };
}

function keyOfLimit(rule: Rule, { limit, identity, note }: AskedLimit, prefix: string): ExplainedKey {
  const by = nameOfKey(rule.settings.key.given);
  const known = { by, ...given('note', note) };
  if (identity === undefined) return known;
  const shown = shownIdentity({ limit, identity });
  return { ...known, identity: shown, ...(limit.instance ? {} : { counter: keyOf(prefix, { limit, identity }) }) };
}

function shareOf({ settings: { trait } }: Rule, { limit }: AskedLimit): ExplainedShare | undefined {
  if (trait?.option !== 'share') return undefined;
  const { by } = trait;
  return { by: nameOfKey(typeof by === 'function' ? by : by.given), ...trait.shown?.(limit.metBy) };
}

function given<Name extends string, T>(name: Name, value: T | undefined): { [name in Name]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { [name in Name]?: T };
}
