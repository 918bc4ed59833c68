import { asksForAnchor, givenAnchor } from '../algorithms/anchor.js';
import type { ShareParameters, Tenant } from '../algorithms/fair-share.js';
import type { AlgorithmOptions } from '../algorithms/index.js';
import { RecentMap } from '../util/recent-map.js';
import { type Rated, unitsOf } from './limit-parameters.js';
import type { LimitSettings } from './limit-settings.js';
import { LimitTerms } from './limit-terms.js';
import { DEFAULT_PRIORITY, PRIORITIES, type Priority } from './priority.js';
import { type ReservedShares, shareKeptFrom } from './reserve-terms.js';

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

/** A limit whose options have been read: what stores work with. It is met by each priority, tenant or anchor as a version of its own. */
export class CompiledLimit extends LimitTerms {
  /** A second version of it, which is counted beside it in the same call, with counters of its own, and never refuses. */
  readonly candidate: CompiledLimit | undefined;
  /** Who meets it, if its units are shared and that is known. */
  readonly tenant: Tenant | undefined;
  /** The limit as no tenant meets it; itself unless one does. */
  readonly ofAllTenants: CompiledLimit = this;
  /** The same limit as each tenant meets it, if its units are shared. */
  private readonly tenants: RecentMap<CompiledLimit> | undefined;
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
    options: AlgorithmOptions,
    settings: LimitSettings,
    part?: { readonly whole: CompiledLimit; readonly priority: Priority; readonly kept: number },
  ) {
    super(options, settings, part);
    if (this.asksForAnchor) this.anchored = new RecentMap();
    if (settings.shared !== undefined) this.tenants = new RecentMap();
    this.whole = part?.whole ?? this;
    this.priority = part?.priority;
    this.candidate =
      part === undefined
        ? settings.candidate && candidateOf(settings.candidate, { ...settings, name: this.name })
        : part.whole.candidate?.forPriority(part.priority);
    if (part === undefined && settings.reserveFor !== undefined) this.byPriority = this.parts(settings.reserveFor);
  }

  /** Whether it keeps a part of its quota from requests of some priority. */
  get keepsUnits(): boolean {
    return this.whole.byPriority !== undefined;
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
