import { BadRequestException, type ExecutionContext, UnauthorizedException } from '@nestjs/common';
import type { Anchor } from '../algorithms/anchor.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import { assertCost } from '../limits/arguments.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { planMessages } from '../errors/plan-messages.js';
import { shareMessages } from '../errors/share-messages.js';
import type { RefusalAnswer } from '../http/refusal-answer.js';
import type { RequestParts } from '../transports/request-reader.js';
import type { BoundKey } from '../key-resolvers/key-resolver.factory.js';
import type { Identify, ResolvedKey } from '../key-resolvers/key-resolver.js';
import type { Outcome, Phase } from '../config/common-limit-options.js';
import type { CheckEntry } from '../limits/counter.js';
import { identityWithin, NOBODY, ownIdentity } from '../limits/hierarchy.js';
import { assertPriority, type Priority } from '../limits/priority.js';
import { andThen, type Awaitable, isPromise } from '../util/awaitable.js';
import type { KeyedLimits, RuleSettings } from './rule-settings.js';

export type { KeyedLimits, RuleSettings } from './rule-settings.js';

/** What a rule asks of the store for one request. */
export interface RuleEntry extends CheckEntry {
  readonly rule: Rule;
}

/** What a call from code says of itself. */
interface Call {
  readonly share?: string | undefined;
  readonly anchor?: Anchor | null | undefined;
}

/** A limit as a request meets it: whom it counts, what the request costs, and whether it applies at all. */
export class Rule {
  private effective: CompiledLimit;
  /** Only while some identities have overrides of their own. */
  private keyed: KeyedLimits | undefined;
  private readonly listeners: (() => void)[] = [];
  /** What a call costs from code, where there is no request to ask. */
  readonly fixedCost: number;
  /** The priority of a call from code, unless it says otherwise. */
  readonly fixedPriority: Priority | undefined;
  /** @internal Finds the rules of all limits that its own is within. Set where it is within any. */
  findAncestors: (() => readonly Rule[]) | undefined;
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

  /** Whether each route has a counter of its own, and so a rule. */
  get perRoute(): boolean {
    return this.settings.perRoute;
  }

  /** The same rule with counters of its own. */
  within(namespace: string): Rule {
    return new RouteRule(this, this.settings, `${this.configured.namespace} ${namespace}`);
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
    return this.limitFor(identity).forPriority(this.fixedPriority);
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

  /** Whether it calls no function of the user's: it always applies, costs the same, and its key looks only at the request. */
  get isFixed(): boolean {
    const { skip, key, cost, priority, share, anchor } = this.settings;
    if (skip !== undefined || share !== undefined || anchor !== undefined) return false;
    if (key.isPure !== true || this.isNested) return false;
    return typeof cost === 'number' && typeof priority !== 'function';
  }

  /** What finds whom a request counts for. Fixed rules with equal keys have the same. */
  get identify(): Identify {
    return this.settings.key.identify;
  }

  /** What to ask of the store, or nothing if the limit does not apply to the request. */
  entry(context: ExecutionContext, parts: RequestParts): Awaitable<RuleEntry | undefined> {
    const { skip } = this.settings;
    if (skip === undefined) return this.identified(context, parts);
    return andThen<boolean, RuleEntry | undefined>(skip(context), (skipped) =>
      skipped ? undefined : this.identified(context, parts),
    );
  }

  /** The same of a fixed rule, once its key has been asked. */
  fixedEntry(key: ResolvedKey, context: ExecutionContext, parts: RequestParts): RuleEntry | undefined {
    const identity = this.identity(key, context, parts);
    if (identity === undefined) return undefined;
    const { cost, priority } = this.settings;
    const limit = this.limitFor(identity).forPriority(priority as Priority | undefined);
    if (limit.off) return undefined;
    return ranked({ rule: this, limit, identity, cost: cost as number }, priority as Priority | undefined);
  }

  /** Whether a request is one that it does not count. */
  skips(context: ExecutionContext): Awaitable<boolean> {
    return this.settings.skip?.(context) ?? false;
  }

  /** Whom a request counts for, or nothing. Where the limit itself does not count it, a missing key is no reason to refuse it. */
  identityOf(context: ExecutionContext, parts: RequestParts, counts: boolean): Awaitable<string | undefined> {
    return andThen(this.settings.key.identify(context, parts), (key) => {
      const isMissing = key === undefined || key === null || key === '';
      return isMissing && !counts ? undefined : this.identity(key, context, parts);
    });
  }

  /** What a request costs. */
  costOf(context: ExecutionContext): Awaitable<number> {
    const { cost } = this.settings;
    if (typeof cost === 'number') return cost;
    return andThen(cost(context), (units) => {
      assertCost(units);
      return units;
    });
  }

  /** What to ask of the store, once it is known whom the request counts for and what it costs; nothing if the limit is not asked. */
  entryOf(identity: string, cost: number, context: ExecutionContext): Awaitable<RuleEntry | undefined> {
    const limit = this.limitFor(identity);
    return limit.off ? undefined : this.ranked(limit, identity, context, cost);
  }

  private identified(context: ExecutionContext, parts: RequestParts): Awaitable<RuleEntry | undefined> {
    const found = this.settings.key.identify(context, parts);
    if (isPromise(found))
      return andThen(found, (key) => this.charge(this.identity(key, context, parts), context, parts));
    return this.charge(this.identity(found, context, parts), context, parts);
  }

  private identity(
    key: ResolvedKey,
    context: ExecutionContext,
    parts: RequestParts,
    by = this.settings.key,
  ): string | undefined {
    if (key === undefined || key === null || key === '') return this.missing(context, parts, by);
    if (typeof key === 'string') return key;
    if (Number.isFinite(key) || typeof key === 'bigint') return String(key);
    throw new RateLimitArgumentError(messages.wrongResolvedKey(this.name, key));
  }

  private missing(context: ExecutionContext, parts: RequestParts, key: BoundKey): string | undefined {
    const { onMissingKey, byAddress, log } = this.settings;
    // A shadow refuses nothing, whatever the reason.
    if (onMissingKey === 'skip' || (onMissingKey === 'refuse' && this.limit.shadow)) return undefined;
    if (onMissingKey === 'refuse') {
      if (key.needsUser) throw new UnauthorizedException(messages.noUser());
      throw new BadRequestException(messages.noKey(key.noun));
    }
    const identity = byAddress(context, parts);
    if (identity === undefined) log.warn(messages.noAddress(this.name));
    return identity;
  }

  private charge(
    identity: string | undefined,
    context: ExecutionContext,
    parts: RequestParts,
  ): Awaitable<RuleEntry | undefined> {
    if (identity === undefined) return undefined;
    const limit = this.limitFor(identity);
    if (limit.off) return undefined;
    const { share, anchor } = this.settings;
    if (anchor !== undefined) {
      return andThen(anchor(context), (at) => this.ranked(limit.forAnchor(at), identity, context));
    }
    if (share === undefined) return this.ranked(limit, identity, context);
    return andThen<ResolvedKey, RuleEntry | undefined>(share.by.identify(context, parts), (found) => {
      const tenant = this.identity(found, context, parts, share.by);
      if (tenant === undefined) return undefined;
      return this.ranked(limit.forTenant(share.tenant(tenant, this.name)), identity, context);
    });
  }

  /**
   * The limit as a call from code meets it, which says whose units it asks for where these are shared, and where its windows begin
   * where a function says so of requests. One that only looks need not.
   */
  limitForCall(identity: string, { share: tenant, anchor }: Call, looks = false): CompiledLimit {
    const limit = this.limitFor(identity);
    if (limit.asksForAnchor) {
      if (anchor === undefined && !looks) throw new RateLimitArgumentError(planMessages.noAnchor(this.name));
    } else if (anchor !== undefined && !this.configured.asksForAnchor) {
      // While a changed rate has a fixed one, callers need not know.
      throw new RateLimitArgumentError(planMessages.notAnchored(this.name));
    }
    return this.limitOfTenant(anchor === undefined ? limit : limit.forAnchor(anchor), tenant);
  }

  /** The limit as a tenant meets it, wherever its windows begin. */
  limitForTenant(identity: string, tenant: string): CompiledLimit {
    return this.limitOfTenant(this.limitFor(identity), tenant);
  }

  private limitOfTenant(limit: CompiledLimit, tenant: string | undefined): CompiledLimit {
    const { share } = this.settings;
    if (share === undefined) {
      if (tenant !== undefined) throw new RateLimitArgumentError(shareMessages.notShared(this.name));
      return limit;
    }
    if (tenant === undefined) throw new RateLimitArgumentError(shareMessages.noTenant(this.name));
    return limit.forTenant(share.tenant(tenant, this.name));
  }

  private ranked(
    limit: CompiledLimit,
    identity: string,
    context: ExecutionContext,
    cost?: number,
  ): Awaitable<RuleEntry> {
    const { priority } = this.settings;
    if (typeof priority !== 'function') return this.costed(limit, priority, identity, context, cost);
    return andThen(priority(context), (found) => {
      assertPriority(found);
      return this.costed(limit, found, identity, context, cost);
    });
  }

  private costed(
    whole: CompiledLimit,
    priority: Priority | undefined,
    identity: string,
    context: ExecutionContext,
    cost: number | undefined,
  ): Awaitable<RuleEntry> {
    const limit = whole.forPriority(priority);
    return andThen(cost ?? this.costOf(context), (units) =>
      ranked({ rule: this, limit, identity, cost: units }, priority),
    );
  }
}

const NONE: readonly Rule[] = [];

/** A rule of all routes, as one of them meets it: it follows when the rate changes. */
class RouteRule extends Rule {
  private source: CompiledLimit;
  /** Those of some identities, by what they are on all routes. */
  private readonly ownLimits = new WeakMap<CompiledLimit, CompiledLimit>();

  constructor(
    override readonly ofAll: Rule,
    settings: RuleSettings,
    private readonly namespace: string,
  ) {
    super(ofAll.configured.within(namespace), settings);
    this.source = ofAll.configured;
  }

  override get ancestors(): readonly Rule[] {
    return this.ofAll.ancestors;
  }

  override get limit(): CompiledLimit {
    const { limit } = this.ofAll;
    if (limit !== this.source) {
      this.source = limit;
      this.decideBy(limit.within(this.namespace));
    }
    return super.limit;
  }

  override limitFor(identity: string): CompiledLimit {
    const limit = this.ofAll.limitFor(identity);
    if (limit === this.ofAll.limit) return this.limit;
    let own = this.ownLimits.get(limit);
    if (own === undefined) this.ownLimits.set(limit, (own = limit.within(this.namespace)));
    return own;
  }
}

/** An entry that says how important the request is, if that matters. */
function ranked(entry: RuleEntry, priority: Priority | undefined): RuleEntry {
  return priority === undefined ? entry : { ...entry, priority };
}

function isOtherFunction(one: unknown, other: unknown): boolean {
  return typeof one === 'function' && one !== other;
}
