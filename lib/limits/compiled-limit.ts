import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { planMessages } from '../errors/plan-messages.js';
import { type Algorithm, issuesTickets, type Parameters } from '../algorithms/algorithm.js';
import { asksForAnchor, givenAnchor } from '../algorithms/anchor.js';
import { type ShareParameters, sharedBy, type Tenant } from '../algorithms/fair-share.js';
import type { HoldTerms } from '../algorithms/hold-terms.js';
import type { PlanOptions } from '../algorithms/plan-terms.js';
import { algorithms, type AlgorithmOptions } from '../algorithms/index.js';
import { RecentMap } from '../util/recent-map.js';
import {
  knownFor,
  prefetched,
  type Rated,
  shareParameters,
  unitsOf,
  withCeiling,
  withQuota,
} from './limit-parameters.js';
import {
  refuseForeignOptions,
  refuseToRecord,
  refuseWithHold,
  refuseWithin,
  refuseWithPlan,
} from './limit-refusals.js';
import { DEFAULT_PRIORITY, PRIORITIES, type Priority } from './priority.js';
import { type ReservedShares, shareKeptFrom } from './reserve-terms.js';
import { recordingOf, type UsageRecording } from './usage-terms.js';
import type { CarryOver, Escalation, LimitSettings, OnStoreError, PrefetchTerms } from './limit-settings.js';

export {
  type CarryOver,
  type Escalation,
  type LimitSettings,
  type OnStoreError,
  type PrefetchTerms,
  type ShareTerms,
  STORE_ERROR_POLICIES,
  type StoreErrorPolicy,
  type UnansweredCheck,
} from './limit-settings.js';

/** The share of its quota from which on a limit is near. */
const NEAR_LIMIT = 0.8;

/** What a namespace holds only if a method has a very odd name. */
const SEPARATORS = /[%:\r\n]/g;

/** What follows the code of its algorithm in the keys of a candidate. */
const CANDIDATE = 'c';

/** A limit whose options have been read: what stores work with. */
export class CompiledLimit {
  /** Its name, the default one included. */
  readonly name: string;
  /** The namespace of its counters; empty if its name alone tells them apart. */
  readonly namespace: string;
  /** How it decides. */
  readonly algorithm: Algorithm;
  /** What its algorithm made of its options, by which stores decide. */
  readonly parameters: Parameters;
  /** What the user wrote: where units are prefetched, all instances decide by stricter parameters. */
  private readonly declared: Parameters;
  /** Evaluated, counted and reported, but never a reason to refuse. */
  readonly shadow: boolean;
  /** Not asked at all: its callers let everything pass. Its counters stay as they are. */
  readonly off: boolean;
  /** It is near once so many units are used. */
  readonly nearFrom: number;
  /** What happens while its store fails. */
  readonly onStoreError: OnStoreError;
  /** What becomes of the units that were left under another quota; without it, what the algorithm makes of them. */
  readonly carry: CarryOver | undefined;
  /** Microseconds for which it refuses whom it has refused, for the first time if they have steps; 0 for no longer than it has to. */
  readonly blockFor: number;
  /** The steps of its blocks, if they have any. */
  readonly escalation: Escalation | undefined;
  /** Its refusals may be remembered until their wait is over. */
  readonly remembersRefusals: boolean;
  /** The units that an instance takes at once, if it does. */
  readonly prefetch: PrefetchTerms | undefined;
  /** Counted by each instance of the app for itself, in process. */
  readonly instance: boolean;
  /** A second version of it, which is counted beside it in the same call, with counters of its own, and never refuses. */
  readonly candidate: CompiledLimit | undefined;
  /** It is a second version of another limit. */
  readonly isCandidate: boolean;
  /** Who meets it, if its units are shared and that is known. */
  readonly tenant: Tenant | undefined;
  /** The limit as no tenant meets it; itself unless one does. */
  readonly ofAllTenants: CompiledLimit = this;
  /** The same limit as each tenant meets it, if its units are shared. */
  private readonly tenants: RecentMap<CompiledLimit> | undefined;
  /**
   * Tells its counters from those of every other limit: no namespace in it holds a colon, a code is two letters, followed by one
   * more if it is a candidate's, a generation digits.
   */
  readonly id: string;
  /** @internal How units of it are held that are reserved; nothing if they cannot be. Each check reads it. */
  readonly hold: HoldTerms | undefined;
  /** @internal How the units that it charges are recorded by days; nothing if they are not. Each check reads it. */
  readonly usage: UsageRecording | undefined;
  /** Tells its record from those of all other limits: its counters may begin anew, or be another algorithm's, and the record goes on. */
  readonly recordId: string;
  /** Whether it learns how much fits. Each check reads it. */
  readonly adapts: boolean;
  /** The name of the limit whose counters its own are within; nothing if it stands alone. */
  readonly parent: string | undefined;
  /** The units of its quota that are borrowed: what its ceiling is above its rate; 0 if it never borrows. Each check reads it. */
  readonly above: number;
  /** The units of its quota that those within it may not borrow. */
  readonly kept: number;
  /** Whether how much fits at once differs from window to window. Each check reads it. */
  readonly varies: boolean;
  /** Whether it takes credits. Each check reads it. */
  readonly takesCredits: boolean;
  /** Its `id` without the generation. */
  readonly lineage: string;
  /** The same limit as requests of each anchor meet it, if a function says by the request where its windows begin. */
  private readonly anchored: RecentMap<CompiledLimit> | undefined;
  /** Where the windows begin of the requests that meet it: milliseconds, or `null` for the calendar's; nothing if that is known of all. */
  private anchor: number | null | undefined;
  /** The limit with all of its quota, if a part of it is kept from the requests that meet this one; else itself. */
  readonly whole: CompiledLimit;
  /** The priority of the requests that meet it, if a part of the quota is kept from them. */
  readonly priority: Priority | undefined;
  /** The same limit as requests of each priority meet it, if it keeps something from any. */
  private readonly byPriority: ReadonlyMap<Priority, CompiledLimit> | undefined;

  /**
   * Reads the options. Throws `RateLimitConfigError`.
   *
   * @param options those of the algorithm
   * @param settings all others
   * @param part the limit with all of its quota, the priority of the requests that meet this one, and the units that are kept from them
   */
  constructor(
    /** The options of its algorithm, as they were written. */
    readonly options: AlgorithmOptions,
    private readonly settings: LimitSettings,
    part?: { readonly whole: CompiledLimit; readonly priority: Priority; readonly kept: number },
  ) {
    const { location, namespace = '', name, shadow = false, generation = 0, ...rest } = settings;
    const algorithm = algorithms.for(options);
    if (algorithm === undefined) {
      throw new RateLimitConfigError(messages.unknownAlgorithm(location, options.algo, algorithms.names));
    }
    refuseForeignOptions(options, algorithm, location);
    if (asksForAnchor(options)) {
      if (rest.prefetch !== undefined) throw new RateLimitConfigError(planMessages.anchorWith(location, 'prefetch'));
      this.anchored = new RecentMap();
    }
    const own = this.anchored && (algorithm.following as Algorithm | undefined);
    this.algorithm = rest.shared === undefined ? (own ?? algorithm) : sharedBy(algorithm);
    this.declared = algorithm.compile(options as never, location);
    this.prefetch = rest.prefetch;
    this.parameters =
      this.prefetch === undefined ? this.declared : prefetched(algorithm, this.declared, this.prefetch, location);
    this.whole = part?.whole ?? this;
    this.priority = part?.priority;
    this.above = 0;
    if (rest.ceiling !== undefined) {
      this.parameters = withCeiling(algorithm, options, rest.ceiling, location);
      this.above = this.parameters.quota - this.declared.quota;
    }
    this.kept = rest.lends === undefined ? 0 : unitsOf(1 - rest.lends, this.declared.quota);
    if (part !== undefined) {
      const { kept } = part;
      this.parameters = { ...withQuota(algorithm, this.parameters, part.whole.quota - kept), kept };
    }
    if (rest.shared !== undefined) {
      this.parameters = shareParameters(algorithm, this.declared, rest.shared, location);
      this.tenants = new RecentMap();
    }
    this.hold = this.declared.hold;
    this.adapts = algorithm.adapting !== undefined;
    this.name = name ?? algorithm.defaultName(options as never) + (settings.nameEnd ?? '');
    this.namespace = namespace;
    this.off = rest.off ?? false;
    // Nothing is refused by a limit that is not asked.
    this.shadow = shadow || this.off;
    this.nearFrom = unitsOf(rest.nearLimit ?? NEAR_LIMIT, this.quota);
    this.onStoreError = rest.onStoreError ?? 'local';
    this.escalation = rest.escalation;
    this.blockFor = rest.escalation?.steps[0] ?? rest.blockFor ?? 0;
    // What tenants used under another quota stays theirs, and so do the units of a plan.
    this.varies = algorithm.varying !== undefined;
    this.takesCredits = (options as PlanOptions).credits === true;
    this.carry = rest.shared === undefined && !this.varies ? rest.carry : undefined;
    if (this.varies) refuseWithPlan(this.planOption!, this.blockFor, rest.candidate, location);
    if (rest.parent !== undefined) refuseWithin(this.planOption, location);
    if (this.hold !== undefined) refuseWithHold(location, this.blockFor, this.prefetch);
    this.usage = recordingOf(rest.usage);
    if (this.usage !== undefined) this.hold = knownFor(this.hold, this.usage.keep);
    if (this.usage !== undefined) refuseToRecord(algorithm, location);
    this.remembersRefusals =
      rest.remembersRefusals === true && !issuesTickets(algorithm) && this.prefetch === undefined;
    this.instance = rest.instance ?? false;
    if (this.adapts && !this.instance) {
      throw new RateLimitConfigError(messages.notShared(location, algorithm.name, 'cluster'));
    }
    this.isCandidate = rest.isCandidate ?? false;
    this.parent = rest.parent;
    const code = this.isCandidate ? algorithm.code + CANDIDATE : algorithm.code;
    const place = this.namespace.replaceAll(SEPARATORS, encodeURIComponent);
    this.recordId = `${place}:${this.name}`;
    this.lineage = `${this.recordId}:${code}`;
    this.id = generation > 0 ? `${this.lineage}.${generation}` : this.lineage;
    this.candidate =
      part === undefined
        ? rest.candidate && candidateOf(rest.candidate, { ...settings, name: this.name })
        : part.whole.candidate?.forPriority(part.priority);
    if (part === undefined && rest.reserveFor !== undefined) this.byPriority = this.parts(rest.reserveFor);
  }

  /** Whether it keeps a part of its quota from requests of some priority. */
  get keepsUnits(): boolean {
    return this.whole.byPriority !== undefined;
  }

  /** The option that gives its windows more than their quota, or a beginning of each request's own; nothing if none does. */
  get planOption(): 'credits' | 'rollover' | 'anchor' | undefined {
    if (this.varies) return this.takesCredits ? 'credits' : 'rollover';
    return this.asksForAnchor ? 'anchor' : undefined;
  }

  /** The limit as requests of a priority meet it: without what is kept for more important ones. */
  forPriority(priority: Priority = DEFAULT_PRIORITY): CompiledLimit {
    const { byPriority } = this.whole;
    return byPriority === undefined ? this : byPriority.get(priority)!;
  }

  /** The same limit as those meet it who have met another version of it so. */
  asMet({ priority, tenant, whole: { anchor } }: CompiledLimit): CompiledLimit {
    if (tenant !== undefined) return this.forTenant(tenant);
    const met = anchor === undefined ? this.whole : this.whole.forAnchor(anchor);
    return priority === undefined ? met : met.forPriority(priority);
  }

  /** Whether a function says by the request where its windows begin, and this one is met by nobody who was asked. */
  get asksForAnchor(): boolean {
    return this.whole.anchored !== undefined;
  }

  /**
   * The limit as requests meet it whose windows begin at an anchor; with none, where the calendar's do. Before `forPriority`. Throws
   * `RateLimitArgumentError`.
   */
  forAnchor(given: unknown): CompiledLimit {
    const { anchored, options, settings } = this.whole;
    if (anchored === undefined) return this;
    const anchor = givenAnchor(given, (options as { timezone?: string }).timezone ?? 'UTC', this.name);
    return anchored.of(String(anchor), () => {
      const candidate = settings.candidate && withAnchor(settings.candidate, anchor);
      const limit = new CompiledLimit(withAnchor(options, anchor), { ...settings, name: this.name, candidate });
      limit.anchor = anchor;
      return limit;
    })!;
  }

  private parts(reserved: ReservedShares): ReadonlyMap<Priority, CompiledLimit> {
    const { options, settings, quota } = this;
    const parts = new Map<Priority, CompiledLimit>();
    for (const priority of PRIORITIES) {
      // Others are left one unit at least.
      const kept = Math.min(quota - 1, unitsOf(shareKeptFrom(priority, reserved), quota));
      const own = { ...settings, name: this.name };
      parts.set(priority, kept === 0 ? this : new CompiledLimit(options, own, { whole: this, priority, kept }));
    }
    return parts;
  }

  /** Whether its units are shared among tenants. */
  get isShared(): boolean {
    return this.tenants !== undefined;
  }

  /** The limit as requests of a tenant meet it, if its units are shared. */
  forTenant(tenant: Tenant | undefined): CompiledLimit {
    const { tenants } = this;
    if (tenants === undefined || tenant === undefined) return this;
    return tenants.of(`${tenant.weight} ${tenant.id}`, () => {
      const parameters: ShareParameters = { ...(this.parameters as ShareParameters), tenant };
      const own = Object.create(this) as CompiledLimit;
      return Object.assign(own, { parameters, tenant, whole: own, ofAllTenants: this });
    })!;
  }

  /** The most units that can be allowed at once. */
  get quota(): number {
    return this.parameters.quota;
  }

  /**
   * The same limit with a part of its rate and quota, at least one unit, and no prefetched units: what one of several instances
   * may allow by itself, and does not record.
   */
  share(part: number): CompiledLimit {
    if (this.tenant !== undefined) return this.ofAllTenants.share(part).forTenant(this.tenant);
    if (this.whole !== this) return this.whole.share(part).forPriority(this.priority);
    const { prefetch: _, carry: _none, usage: _nor, ...settings } = this.settings;
    const options: AlgorithmOptions = this.algorithm.share(this.options as never, part);
    const { ceiling } = settings;
    const own = ceiling !== undefined && { ceiling: Math.max((options as Rated).rate, Math.floor(ceiling * part)) };
    const candidate: AlgorithmOptions | undefined = this.candidate?.algorithm.share(settings.candidate as never, part);
    return new CompiledLimit(options, { ...settings, ...own, name: this.name, candidate });
  }

  /** The same limit where no units are prefetched: it is decided by what the user wrote. */
  withoutPrefetch(): CompiledLimit {
    const { prefetch: _, ...settings } = this.settings;
    return new CompiledLimit(this.options, settings);
  }

  /** The same limit with counters of its own. */
  within(namespace: string): CompiledLimit {
    if (this.tenant !== undefined) return this.ofAllTenants.within(namespace).forTenant(this.tenant);
    if (this.whole !== this) return this.whole.within(namespace).forPriority(this.priority);
    return new CompiledLimit(this.options, { ...this.settings, namespace });
  }

  /** The same limit with other options of its algorithm. */
  withOptions(options: AlgorithmOptions): CompiledLimit {
    return new CompiledLimit(options, { ...this.settings, name: this.name });
  }

  /** Milliseconds of the limit's window at `nowMs`. */
  windowMs(nowMs: number): number {
    return this.algorithm.window(this.declared, nowMs * 1000) / 1000;
  }
}

/** The second version of a limit: like the first in all but its algorithm's options, and in shadow mode. */
function candidateOf(options: AlgorithmOptions, settings: LimitSettings): CompiledLimit {
  const { candidate: _, carry: _none, usage: _nor, onStoreError, ...rest } = settings;
  return new CompiledLimit(options, {
    ...rest,
    location: `${rest.location}.candidate`,
    shadow: true,
    isCandidate: true,
    // A function of the user's is asked of the limit alone.
    ...(typeof onStoreError === 'string' && { onStoreError }),
  });
}

/** Options with a fixed anchor, if a function gave it. */
function withAnchor(options: AlgorithmOptions, anchor: number | null): AlgorithmOptions {
  if (!asksForAnchor(options)) return options;
  const { anchor: _, ...rest } = options;
  return anchor === null ? rest : { ...rest, anchor };
}
