import { isDeepStrictEqual } from 'node:util';
import type { Policy } from '../config/policy.js';
import { configError } from '../../engine/errors/errors.js';
import { moduleLogger } from '../../engine/errors/logger.js';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import type { Overrides } from '../overrides/overrides.js';
import type { LimitRegistry, NamedLimit } from '../rules/limit-registry.js';
import type { RuleCompiler } from '../rules/rule-compiler.js';
import { PolicyChange } from './policy-change.js';
import { allAtOnce, inSlices, type Steps } from './slices.js';
import type { PolicySettings } from './policy-settings.js';
import { showProblem } from './problems.js';
import type { PolicyReading } from './read-policy.js';
import { identityOf } from '../overrides/lists/listed.js';
import { identityProblem, patternOrKeyProblem } from '../rules/possible-keys.js';
import type { Rule } from '../rules/rule.js';
import { reasonOf } from '../../engine/errors/reasons.js';

// All that an app with a policy loads.
export { readPolicySettings } from './policy-settings.js';
export { showProblem };

/** The time until a file that is being written is checked again, in milliseconds. */
const SETTLE_MS = 200;

/** Applies versions of a policy, each completely or not at all. */
export class Policies {
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;
  /** The message logged about the last version, if it was rejected. */
  private refused: string | undefined;
  private knowsRoutes = false;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly compiler: RuleCompiler,
    private readonly overrides: Overrides,
    private readonly settings: PolicySettings,
    private current: Policy | undefined,
  ) {}

  /** Applies the first version, once all limits in code are known. Throws `RateLimitConfigError`. */
  begin(): void {
    const problems = this.current === undefined ? [] : allAtOnce(this.take(this.current));
    if (problems.length > 0) throw configError('SLUICE_INVALID_POLICY', policyMessages.refused(problems));
  }

  /** Throws `RateLimitConfigError` for keys that no limit can have, once the limits of all routes are known. */
  check(): void {
    this.knowsRoutes = true;
    const problems = this.current === undefined ? [] : keyProblems(this.current, this.registry);
    if (problems.length > 0) throw configError('SLUICE_INVALID_POLICY', policyMessages.refused(problems));
  }

  /** Starts checking the source for further versions at regular intervals, one check at a time. */
  watch(): void {
    this.lookIn(this.settings.everyMs);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.settings.source.close();
  }

  /** Checks the source later; never if it is only read once. */
  private lookIn(ms: number | undefined): void {
    if (ms !== undefined && !this.isClosed) this.timer = setTimeout(() => void this.look(), ms).unref();
  }

  private async look(): Promise<void> {
    const { source, everyMs } = this.settings;
    let found: PolicyReading | 'changing' | undefined;
    try {
      found = await source.look();
      if (this.isClosed) return;
      if (found !== undefined && found !== 'changing') await this.hearInSlices(found);
    } catch (error) {
      // Any error is reported, since the next version may be valid.
      const message = policyMessages.unreadable(reasonOf(error));
      await this.hearInSlices({ problems: [{ file: source.name, path: '', message }] });
    }
    this.lookIn(found === 'changing' ? Math.min(SETTLE_MS, everyMs!) : everyMs);
  }

  /** Applies a version, or logs once why it can't be applied. */
  hear(reading: PolicyReading): void {
    allAtOnce(this.heard(reading));
  }

  /** The same in slices, between which the rest of the process runs. */
  async hearInSlices(reading: PolicyReading): Promise<void> {
    await inSlices(this.heard(reading));
  }

  private *heard(reading: PolicyReading): Steps<void> {
    if (!('policy' in reading)) {
      this.refuse(reading.problems.map(showProblem));
      return;
    }
    const { policy } = reading;
    // Line numbers, which appear in messages, are part of a version.
    const isNew = !isDeepStrictEqual(policy, this.current);
    const problems = isNew ? yield* this.take(policy) : [];
    if (this.isClosed) return;
    if (problems.length > 0) {
      this.refuse(problems);
      return;
    }
    if (isNew) moduleLogger.log(policyMessages.taken(policy.name));
    else if (this.refused !== undefined) moduleLogger.log(policyMessages.asBefore(policy.name));
    this.refused = undefined;
  }

  private *take(policy: Policy): Steps<readonly string[]> {
    const { registry, compiler } = this;
    const { named } = registry;
    let change = new PolicyChange(policy, registry, compiler);
    yield* change.work();
    // More limits may exist by now, for example from a module that is loaded lazily.
    if (!isSame(named, registry.named)) {
      change = new PolicyChange(policy, registry, compiler);
      allAtOnce(change.work());
    }
    const problems = [...change.problems, ...(this.knowsRoutes ? keyProblems(policy, registry) : [])];
    if (problems.length > 0 || this.isClosed) return problems;
    // Both steps are synchronous, so no request is decided in between.
    change.apply();
    this.overrides.takePolicy(policy);
    this.current = policy;
    return [];
  }

  private refuse(lines: readonly string[]): void {
    const text = policyMessages.notTaken(lines);
    if (text !== this.refused) moduleLogger.error(text);
    this.refused = text;
  }
}

function isSame(before: readonly NamedLimit[], now: readonly NamedLimit[]): boolean {
  return before.length === now.length && before.every((limit, index) => limit === now[index]);
}

/** Returns a problem with its place for each key in a policy that no limit can have, once the limits in code and on routes are known. */
function keyProblems({ overrides, lists }: Policy, registry: LimitRegistry): string[] {
  const rules = new Map(registry.named.map(({ rule }) => [rule.name, rule]));
  const inUse = registry.keysInUse;
  const problems: string[] = [];
  const add = (place: string, expected: string | undefined) => {
    if (expected !== undefined) problems.push(`${place}: ${policyMessages.impossibleKey(expected)}`);
  };
  // A limit that only this version of the policy defines isn't used by any route yet.
  const ofLimit = (place: string, rule: Rule | undefined, key: string) => {
    if (rule !== undefined) add(place, patternOrKeyProblem(rule, key));
  };
  for (const { limit, key, place } of overrides) ofLimit(place, rules.get(limit), key);
  for (const { limit, key, place } of lists) {
    const identity = identityOf(key);
    if (identity === undefined) continue;
    if (limit === '') add(place, identityProblem(identity, inUse));
    else ofLimit(place, rules.get(limit), identity);
  }
  return problems;
}
