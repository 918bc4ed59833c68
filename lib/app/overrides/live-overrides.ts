import type { Policy, PolicyOverride } from '../config/policy.js';
import { configError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { LimitRegistry, NamedLimit } from '../rules/limit-registry.js';
import { identityProblem } from '../rules/possible-keys.js';
import type { RuleCompiler } from '../rules/rule-compiler.js';
import { ExpiryQueue } from '../../engine/util/heap.js';
import { LongTimeout } from '../../engine/util/long-timeout.js';
import { LimitOverrides } from './limit-overrides.js';
import type { Lists } from './lists/lists.js';
import { addressOf, fieldOf, type OverrideKind } from './override-address.js';
import type { OverrideHolder } from './override-record.js';
import type { OverrideUpdate } from './override-store.js';
import { getOrMake } from '../../engine/util/objects.js';

interface Expiry {
  readonly overrides: OverrideHolder;
  readonly kind: OverrideKind;
  readonly key: string;
}

/** The destination of records whose fields start with the same prefix. */
interface Target {
  readonly prefix: string;
  readonly kind: OverrideKind;
  readonly overrides: OverrideHolder;
}

/** The current overrides of all limits in this process. */
export class LiveOverrides {
  /** By limit name, including limits that only other apps have. */
  private readonly byLimit = new Map<string, LimitOverrides>();
  private readonly expiries = new ExpiryQueue<Expiry>();
  private timeout: LongTimeout | undefined;
  /** The offset of the store's clock from the monotonic clock, in milliseconds. */
  private ahead = 0;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly compiler: RuleCompiler,
    private readonly lists: Lists,
  ) {}

  /** The overrides of all limits of this app. */
  get ofLimits(): LimitOverrides[] {
    return [...this.byLimit.values()].filter(({ limit }) => limit !== undefined);
  }

  close(): void {
    this.timeout?.clear();
  }

  /** Applies records, or ends overrides. */
  readonly apply = ({ now, complete, records }: OverrideUpdate): void => {
    this.ahead = now - performance.now();
    const changed = new Set<OverrideHolder>(complete ? this.holders() : []);
    for (const overrides of changed) overrides.clear();
    if (complete) this.expiries.clear();
    let target: Target | undefined;
    for (const [field, record] of records) {
      // Thousands of consecutive fields may share a prefix.
      if (target === undefined || !field.startsWith(target.prefix)) target = this.targetOf(field);
      if (target === undefined) continue;
      const { overrides, kind, prefix } = target;
      const key = field.slice(prefix.length);
      const endsAt = overrides.put(kind, key, record, now);
      if (endsAt !== undefined) this.expiries.add(endsAt, { overrides, kind, key });
      changed.add(overrides);
    }
    this.finish(now, changed);
  };

  private targetOf(field: string): Target | undefined {
    const address = addressOf(field);
    if (address === undefined) return undefined;
    const { kind, limit } = address;
    const overrides = kind === 'list' ? this.lists.scope(limit) : this.overridesOf(limit);
    return { prefix: fieldOf({ kind, limit, key: '' }), kind, overrides };
  }

  /** Ends all overrides that have expired, applies the changes, and sets the timer for the next expiry, by the monotonic clock. */
  private finish(now: number, changed: Set<OverrideHolder>): void {
    for (const { overrides, kind, key } of this.expiries.takeExpired(now)) {
      overrides.expire(kind, key, now);
      changed.add(overrides);
    }
    for (const overrides of changed) overrides.commit();
    this.lists.commit();
    this.timeout?.clear();
    this.expiries.dropStale(this.size, () => this.ends());
    const left = this.expiries.next - this.ahead - performance.now();
    const endNext = (): void => this.finish(performance.now() + this.ahead, new Set());
    this.timeout = new LongTimeout(Math.max(0, Math.ceil(left)), endNext, false);
  }

  private get size(): number {
    return this.holders().reduce((sum, { size }) => sum + size, 0);
  }

  private *ends(): Iterable<[at: number, expiry: Expiry]> {
    for (const overrides of this.holders()) {
      for (const [at, kind, key] of overrides.expiries()) yield [at, { overrides, kind, key }];
    }
  }

  /** Applies a policy synchronously, as a whole. The limits of the registry have already been updated. */
  takePolicy({ overrides: policies, lists }: Policy): void {
    const byLimit = new Map<string, PolicyOverride[]>();
    for (const each of policies) getOrMake(byLimit, each.limit, () => []).push(each);
    for (const [name, overrides] of this.byLimit) overrides.takePolicy(byLimit.get(name) ?? []);
    for (const overrides of this.byLimit.values()) overrides.commit();
    this.lists.takePolicy(lists);
  }

  /** Adds new named limits, which a lazily loaded module may define. */
  addNamedLimits(): void {
    for (const limit of this.registry.named) {
      const overrides = this.overridesOf(limit.rule.name);
      if (overrides.limit !== undefined) continue;
      overrides.limit = limit;
      overrides.commit();
    }
  }

  /** The overrides of a limit. Throws `RateLimitConfigError` for an unknown name. */
  of(name: string, location: string): { overrides: LimitOverrides; limit: NamedLimit } {
    const overrides = this.byLimit.get(name);
    if (overrides?.limit !== undefined) return { overrides, limit: overrides.limit };
    const known = this.ofLimits.map((each) => each.name);
    throw configError(
      'SLUICE_UNKNOWN_LIMIT',
      messages.unnamedLimit(location, name, known, this.registry.choosesByRequest),
    );
  }

  /** The reason why no limit can have this key, for entries that apply to all limits. */
  problemOfIdentity(identity: string): string | undefined {
    return identityProblem(identity, this.registry.keysInUse);
  }

  private holders(): OverrideHolder[] {
    return [...this.byLimit.values(), ...this.lists.scopes];
  }

  private overridesOf(name: string): LimitOverrides {
    return getOrMake(this.byLimit, name, () => new LimitOverrides(name, this.compiler));
  }
}
