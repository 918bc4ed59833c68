import type { Anchor } from '../algorithms/anchor.js';
import type { Tenant } from '../algorithms/fair-share.js';
import type { Outcome, Phase } from '../config/common-limit-options.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { planMessages } from '../errors/messages/plan.js';
import { shareMessages } from '../errors/messages/share.js';
import type { RefusalAnswer } from '../http/refusal-answer.js';
import type { Identify } from '../key-resolvers/key-resolver.js';
import type { CompiledLimit, MetBy } from '../limits/compiled-limit.js';
import { identityWithin, NOBODY, ownIdentity } from '../limits/hierarchy.js';
import type { Priority } from '../limits/priority.js';
import type { Awaitable } from '../util/awaitable.js';
import type { KeyedLimits, RuleSettings } from './rule-settings.js';

export type { KeyedLimits, RuleSettings } from './rule-settings.js';

/** What a call from code says of itself. */
export interface Call {
  readonly priority?: Priority | undefined;
  readonly share?: string | undefined;
  readonly anchor?: Anchor | null | undefined;
}

/** A limit as routes and code have it: which one decides now, what it is within, and what its options say besides. */
export class Rule {
  private effective: CompiledLimit;
  /** Only while some identities have overrides of their own. */
  private keyed: KeyedLimits | undefined;
  private readonly listeners: (() => void)[] = [];
  /** What a call costs from code, where there is no request to ask. */
  readonly fixedCost: number;
  /** The priority of a call from code, unless it says otherwise. */
  readonly fixedPriority: Priority | undefined;
  /** @internal What requests and calls say of themselves, unless they say otherwise. */
  readonly usual: MetBy;
  /** @internal Finds the rules of all limits that its own is within. Set where it is within any. */
  findAncestors: (() => readonly Rule[]) | undefined;
  /** @internal Whether a route names it. Of those of the module and of routes themselves it is known without. */
  isOnRoute = false;
  private knownAncestors: readonly Rule[] | undefined;

  constructor(
    /** The limit as it was configured. */
    readonly configured: CompiledLimit,
    readonly settings: RuleSettings,
    readonly ofAll?: Rule, // The rule of all routes, if this one is the part of one route.
  ) {
    this.effective = configured;
    const { cost, priority } = settings;
    this.fixedCost = typeof cost === 'number' ? cost : 1;
    this.fixedPriority = typeof priority === 'function' ? undefined : priority;
    this.usual = { priority: this.fixedPriority };
  }

  /** The limit that decides now for all identities without overrides of their own. */
  get limit(): CompiledLimit {
    return this.effective;
  }

  /** The limit that decides now for an identity: that of its own `key`, whatever that is within. */
  limitFor(identity: string): CompiledLimit {
    const { keyed } = this;
    return keyed === undefined ? this.limit : keyed.limitFor(ownIdentity({ limit: this.configured, identity }));
  }

  /** Whether its counters are within those of another limit. */
  get isNested(): boolean {
    return this.configured.parent !== undefined;
  }

  /** The rules of all limits that its own is within, its parent first. Throws `RateLimitConfigError`. */
  get ancestors(): readonly Rule[] {
    return (this.knownAncestors ??= this.findAncestors?.() ?? NONE);
  }

  /** Those of them that are charged what this one is: they have no cost of their own. */
  get ancestorsOfSameCost(): readonly Rule[] {
    const other = this.ancestors.findIndex(({ hasCost }) => hasCost);
    return other < 0 ? this.ancestors : this.ancestors.slice(0, other);
  }

  /** The identity of a counter, by the identities that the `key` of each level found: that of a level that found none is nobody's. */
  identityAmong(found: (rule: Rule) => string | undefined): string {
    const own = found(this) ?? NOBODY;
    const [parent] = this.ancestors;
    if (parent === undefined) return own;
    return identityWithin({ limit: parent.configured, identity: parent.identityAmong(found) }, own);
  }

  /** Whether requests are counted by it, and not only what code passes. */
  get countsRequests(): boolean {
    return this.isOnRoute || this.configured.namespace !== '';
  }

  /** Whether each route has a counter of its own, and so a rule. */
  get perRoute(): boolean {
    return this.settings.perRoute;
  }

  /** Whether another limit got the same name without being given it, though it counts by another function. */
  countsOtherwise({ settings: { key, count, unnamed } }: Rule): boolean {
    const own = this.settings;
    return own.unnamed && unnamed && (isOtherFunction(own.key.given, key.given) || isOtherFunction(own.count, count));
  }

  get name(): string {
    return this.configured.name;
  }

  /** The limit as calls for an identity meet it that say nothing of their priority. */
  usualLimit(identity: string): CompiledLimit {
    return this.limitFor(identity).meet(this.usual);
  }

  /** Lets another limit of the same name decide from now on, and others for some identities. */
  decideBy(limit: CompiledLimit, keyed?: KeyedLimits): void {
    if (limit === this.effective && keyed === undefined && this.keyed === undefined) return;
    this.effective = limit;
    this.keyed = keyed;
    for (const listener of this.listeners) listener();
  }

  /** Calls back whenever another limit decides from then on. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  get phase(): Phase {
    if (!this.isNested) return this.settings.phase;
    // All levels are checked together.
    return [this, ...this.ancestors].some(({ settings }) => settings.phase === 'authenticated')
      ? 'authenticated'
      : this.settings.phase;
  }

  /** What the response says when this limit refuses. */
  get answer(): RefusalAnswer {
    return this.settings.answer;
  }

  /** Whether the cost of a request is its own. */
  get hasCost(): boolean {
    return this.settings.hasCost;
  }

  /** Whether it matters after the guards. */
  get needsInterceptor(): boolean {
    return this.phase === 'authenticated' || this.waitsForEnd || this.ancestors.some((rule) => rule.waitsForEnd);
  }

  /** Whether the end of a request matters: it may not count, or it ends what is held. */
  get waitsForEnd(): boolean {
    return this.settings.count !== 'all' || this.limit.algorithm.holding !== undefined;
  }

  /** Whether units that a request is charged may have to be given back. */
  get mayGiveBack(): boolean {
    return this.waitsForEnd || this.hasCost || this.limit.algorithm.queue !== undefined;
  }

  /** Whether a request that ended so counts. */
  counts(outcome: Outcome): Awaitable<boolean> {
    const { count } = this.settings;
    if (typeof count === 'function') return count(outcome);
    // A client that did not wait for the answer cannot choose which one it would have been.
    return count === 'all' || outcome.aborted || outcome.failed === (count === 'failed');
  }

  /** What finds whom a request counts for. Fixed rules with equal keys have the same. */
  get identify(): Identify {
    return this.settings.key.identify;
  }

  /**
   * The limit as a call from code meets it, which says whose units it asks for where these are shared, and where its windows begin
   * where a function says so of requests. One that only looks need not.
   */
  limitForCall(identity: string, { priority = this.fixedPriority, share, anchor }: Call, looks = false): CompiledLimit {
    const limit = this.limitFor(identity);
    if (limit.asksForAnchor) {
      if (anchor === undefined && !looks) throw new RateLimitArgumentError(planMessages.noAnchor(this.name));
    } else if (anchor !== undefined && !this.configured.asksForAnchor) {
      // While a changed rate has a fixed one, callers need not know.
      throw new RateLimitArgumentError(planMessages.notAnchored(this.name));
    }
    return limit.meet({ priority, tenant: this.tenantOf(share), anchor });
  }

  /** The limit as a tenant meets it, wherever its windows begin. */
  limitForTenant(identity: string, tenant: string): CompiledLimit {
    return this.limitFor(identity).meet({ tenant: this.tenantOf(tenant) });
  }

  private tenantOf(name: string | undefined): Tenant | undefined {
    const { share } = this.settings;
    if (share === undefined) {
      if (name !== undefined) throw new RateLimitArgumentError(shareMessages.notShared(this.name));
      return undefined;
    }
    if (name === undefined) throw new RateLimitArgumentError(shareMessages.noTenant(this.name));
    return share.tenant(name, this.name);
  }
}

const NONE: readonly Rule[] = [];

function isOtherFunction(one: unknown, other: unknown): boolean {
  return typeof one === 'function' && one !== other;
}
