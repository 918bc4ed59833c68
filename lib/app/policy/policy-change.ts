import { isDeepStrictEqual } from 'node:util';
import { algorithms } from '../../engine/algorithms/index.js';
import type { ExactLimit, LimitDefinition } from '../config/limit-definition.js';
import { commonOptionsThat } from '../config/limit-options.js';
import type { Policy, PolicyLimit, PolicyOverride } from '../config/policy.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import { withinMessages } from '../../engine/errors/messages/calls.js';
import { readPatch, withPatch } from '../overrides/rate-patch.js';
import type { AddedLimit, LimitRegistry, LimitVersion, NamedLimit } from '../rules/limit-registry.js';
import { type Declaration, withPolicy } from '../rules/declaration.js';
import type { RuleCompiler } from '../rules/rule-compiler.js';
import type { Steps } from './slices.js';

/** The common options that can change at run time. They belong to the compiled limit, not to the rule. */
const LIVE: readonly string[] = commonOptionsThat(({ live }) => live !== undefined);

/** The changes that a version of a policy makes to an app's limits. They are computed first and applied separately. */
export class PolicyChange {
  /** The problems of this version, each with its place. */
  readonly problems: string[] = [];
  private readonly versions = new Map<NamedLimit, LimitVersion>();
  /** Limits that code does not define. */
  private readonly added = new Map<string, AddedLimit>();

  constructor(
    private readonly policy: Policy,
    private readonly registry: LimitRegistry,
    private readonly compiler: RuleCompiler,
  ) {}

  /** Computes the changes. If this is done in slices, they are only valid if the registry still has the same limits afterwards. */
  *work(): Steps<void> {
    const { policy, registry } = this;
    const byName = new Map(registry.named.map((limit) => [limit.rule.name, limit]));
    for (const [name, limit] of byName) {
      this.addVersion(name, limit);
      yield;
    }
    const names = [...byName.keys()];
    for (const [name, entry] of policy.limits) {
      if (byName.has(name)) continue;
      this.addLimit(name, entry, names);
      yield;
    }
    for (const override of policy.overrides) {
      this.checkOverride(override, byName);
      yield;
    }
    for (const { limit, place } of policy.lists) if (limit !== '') this.checkLimit(limit, place, byName);
  }

  /** Applies the policy to the limits of the registry. */
  apply(): void {
    for (const [limit, version] of this.versions) Object.assign(limit, version);
    this.registry.defineByPolicy(this.added);
  }

  private addVersion(name: string, limit: NamedLimit): void {
    const { written, declaration, first } = limit;
    const policy = this.policy.limits.get(name);
    if (written === undefined && policy === undefined) {
      this.problems.push(`${this.policy.name}: ${policyMessages.goneLimit(name)}`);
      return;
    }
    const definition = policy === undefined ? written! : definitionOf(written, policy);
    if (this.refuseRestarts(first, definition, policy)) return;
    const location = policy?.place ?? declaration.location;
    const rule = this.compile(definition, { ...declaration, location });
    if (rule !== undefined) this.versions.set(limit, { definition, limit: rule.configured, policy });
  }

  /** Reports changes that a rule cannot make at run time. Returns true if there were any. */
  private refuseRestarts(
    first: LimitDefinition,
    definition: LimitDefinition,
    policy: PolicyLimit | undefined,
  ): boolean {
    const live = [...Object.keys(algorithms.get(first.algo)?.options ?? {}), ...LIVE];
    const [before, after] = [first, definition] as unknown as Record<string, unknown>[];
    const changed = [...new Set([...Object.keys(before!), ...Object.keys(after!)])].filter(
      (option) => !live.includes(option) && !isDeepStrictEqual(before![option], after![option]),
    );
    // Another algorithm has different options, so only the algorithm is reported.
    for (const option of changed.includes('algo') ? ['algo'] : changed) {
      const place = policy?.places.get(option) ?? policy?.place ?? this.policy.name;
      this.problems.push(`${place}: ${policyMessages.needsRestart(option, after![option], before![option])}`);
    }
    return changed.length > 0;
  }

  private addLimit(name: string, policy: PolicyLimit, known: readonly string[]): void {
    if (policy.options.algo === undefined) {
      this.problems.push(`${policy.place}: ${policyMessages.unknownLimit(name, known)}`);
      return;
    }
    const definition = policy.options as LimitDefinition;
    if (!this.isWithinKnown(definition, policy.place)) return;
    const rule = this.compile(definition, { location: policy.place, namespace: '', name });
    if (rule !== undefined) this.added.set(name, { policy, rule });
  }

  /** Returns true if a new limit's parent exists, or if it has none; otherwise reports it. */
  private isWithinKnown({ within }: ExactLimit, place: string): boolean {
    if (within === undefined || this.registry.has(within)) return true;
    this.problems.push(withinMessages.unknownParent(place, within, this.registry.names));
    return false;
  }

  private checkOverride(override: PolicyOverride, byName: ReadonlyMap<string, NamedLimit>): void {
    const { limit: name, patch, place } = override;
    if (!this.checkLimit(name, place, byName)) return;
    const limit = byName.get(name);
    const added = this.policy.limits.get(name);
    const version = limit === undefined ? undefined : this.versions.get(limit);
    const definition = version?.definition ?? (this.added.has(name) ? (added?.options as LimitDefinition) : undefined);
    // Errors in the limit itself have been reported.
    if (definition === undefined || patch === undefined) return;
    const declaration = limit?.declaration ?? { namespace: '', name };
    this.compile(() => withPatch(definition, readPatch(definition, patch, place)), { ...declaration, location: place });
  }

  /** Reports settings for a limit that does not exist. */
  private checkLimit(name: string, place: string, byName: ReadonlyMap<string, NamedLimit>): boolean {
    if (byName.has(name) || this.policy.limits.has(name)) return true;
    this.problems.push(`${place}: ${policyMessages.unknownLimit(name, [...byName.keys()])}`);
    return false;
  }

  private compile(definition: LimitDefinition | (() => LimitDefinition), declaration: Declaration) {
    try {
      const whole = typeof definition === 'function' ? definition() : definition;
      const rule = this.compiler.compile(whole, declaration);
      const { configured } = rule;
      this.registry.refuseChange(configured.name, configured, declaration.location);
      this.registry.warnOfSeconds(whole, configured.name, declaration.location);
      return rule;
    } catch (error) {
      if (!(error instanceof RateLimitConfigError)) throw error;
      this.problems.push(error.message);
      return undefined;
    }
  }
}

function definitionOf(written: LimitDefinition | undefined, policy: PolicyLimit): LimitDefinition {
  return written === undefined ? (policy.options as LimitDefinition) : withPolicy(written, policy);
}
