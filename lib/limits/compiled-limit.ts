import { asksForAnchor, givenAnchor } from '../algorithms/anchor.js';
import type { AlgorithmOptions } from '../algorithms/index.js';
import { RecentMap } from '../util/recent-map.js';
import { type MetBy, versionsOf } from './limit-feature.js';
import { unitsOf } from './limit-parameters.js';
import type { LimitSettings } from './limit-settings.js';
import { LimitTerms } from './limit-terms.js';
import { DEFAULT_PRIORITY, PRIORITIES, type Priority } from './priority.js';
import { type ReservedShares, shareKeptFrom } from './reserve-terms.js';

export {
  type CarryOver,
  type Escalation,
  type LimitSettings,
  type OnStoreError,
  STORE_ERROR_POLICIES,
  type StoreErrorPolicy,
  type UnansweredCheck,
} from './limit-settings.js';
export type { MetBy } from './limit-feature.js';

const BY_ANYBODY: MetBy = {};

/**
 * A limit whose options have been read: what stores work with. Requests that say different things of themselves may `meet` different
 * versions of it. `whole` says where each is counted, and `quota` how much it may have.
 */
export class CompiledLimit extends LimitTerms {
  /** A second version of it, which is counted beside it in the same call, with counters of its own, and never refuses. */
  readonly candidate: CompiledLimit | undefined;
  /** What the requests say of themselves that meet this version. */
  readonly metBy: MetBy;
  /** The line in which calls of those who meet it wait, if they have one of their own. */
  readonly line: string | undefined;
  /** The priority of the requests that meet it, if a part of the quota is kept from them. */
  readonly priority: Priority | undefined;
  /** The limit with all of its quota, if a part of it is kept from the requests that meet this one; else itself. */
  readonly whole: CompiledLimit;
  /** The limit of which this one is a version for some requests; else itself. */
  readonly unmet: CompiledLimit;
  /** Whether all requests meet it alike. */
  private readonly isAlike: boolean;
  /** The versions that requests meet by its features, if they do so in different ones. */
  private readonly versions: RecentMap<CompiledLimit> | undefined;
  /** The versions that requests of each anchor meet, if a function says by the request where its windows begin. */
  private readonly anchored: RecentMap<CompiledLimit> | undefined;
  /** The versions that requests of each priority meet, if it keeps something from any. */
  private readonly byPriority: ReadonlyMap<Priority, CompiledLimit> | undefined;

  /**
   * Reads the options. Throws `RateLimitConfigError`.
   *
   * @param options those of the algorithm
   * @param given all others
   * @param metBy what the requests say of themselves that meet it
   * @param part the limit with all of its quota, and the units that are kept from these requests
   */
  constructor(
    options: AlgorithmOptions,
    given: LimitSettings,
    metBy: MetBy = BY_ANYBODY,
    part?: { readonly whole: CompiledLimit; readonly kept: number },
  ) {
    super(options, given, part);
    const { settings } = this;
    if (this.asksForAnchor) this.anchored = new RecentMap();
    if (versionsOf(this) !== undefined) this.versions = new RecentMap();
    this.unmet = this.whole = part?.whole ?? this;
    // The most important requests meet all of it.
    this.metBy =
      part !== undefined || settings.reserveFor === undefined ? metBy : { ...metBy, priority: PRIORITIES[0] };
    this.priority = part && metBy.priority;
    if (part === undefined) {
      this.candidate = settings.candidate && candidateOf(settings.candidate, { ...settings, name: this.name });
      if (settings.reserveFor !== undefined) this.byPriority = this.parts(settings.reserveFor);
    } else this.candidate = part.whole.candidate?.meet(metBy);
    this.isAlike = (part ?? this.versions ?? this.anchored ?? this.byPriority) === undefined;
  }

  /** Whether it keeps a part of its quota from requests of some priority. */
  get keepsUnits(): boolean {
    return this.whole.byPriority !== undefined;
  }

  /** Whether its units are shared among tenants. */
  get hasTenants(): boolean {
    return this.versions !== undefined;
  }

  /**
   * The version of it that requests meet which say this of themselves; itself, if all meet it alike. Throws `RateLimitArgumentError` for
   * a wrong anchor.
   */
  meet(by: MetBy): CompiledLimit {
    return this.isAlike ? this : this.versionFor(by);
  }

  private versionFor(by: MetBy): CompiledLimit {
    const { whole } = this;
    const { priority = DEFAULT_PRIORITY, anchor } = by;
    if (anchor !== undefined && whole.anchored !== undefined) return whole.anchoredAt(anchor).meet({ priority });
    return this.versionByFeature(by) ?? whole.byPriority?.get(priority) ?? this;
  }

  private anchoredAt(given: unknown): CompiledLimit {
    const { options, settings } = this;
    const anchor = givenAnchor(given, (options as { timezone?: string }).timezone ?? 'UTC', this.name);
    return this.anchored!.of(String(anchor), () => {
      const candidate = settings.candidate && withAnchor(settings.candidate, anchor);
      const own = { ...settings, name: this.name, candidate };
      return new CompiledLimit(withAnchor(options, anchor), own, { anchor });
    })!;
  }

  private versionByFeature(by: MetBy): CompiledLimit | undefined {
    if (this.versions === undefined) return undefined;
    for (const { versions } of this.features!) {
      const id = versions?.idOf(by);
      if (id === undefined) continue;
      return this.versions.of(id, () => {
        const { unmet } = this;
        const own = Object.create(unmet) as CompiledLimit;
        return Object.assign(own, versions!.make(unmet.parameters, by), { whole: own });
      });
    }
    return undefined;
  }

  private parts(reserved: ReservedShares): ReadonlyMap<Priority, CompiledLimit> {
    const { options, settings, quota } = this;
    const parts = new Map<Priority, CompiledLimit>();
    for (const priority of PRIORITIES) {
      // Others are left one unit at least.
      const kept = Math.min(quota - 1, unitsOf(shareKeptFrom(priority, reserved), quota));
      const own = { ...settings, name: this.name };
      const metBy = { ...this.metBy, priority };
      parts.set(priority, kept === 0 ? this : new CompiledLimit(options, own, metBy, { whole: this, kept }));
    }
    return parts;
  }

  /**
   * The same limit with a part of its rate and quota, at least one unit: what one of several instances
   * may allow by itself, with the features that decide.
   */
  partOf(part: number): CompiledLimit {
    if (this.unmet !== this) return this.unmet.partOf(part).meet(this.metBy);
    const { carry: _, ...settings } = this.settings;
    const options: AlgorithmOptions = this.algorithm.share(this.options as never, part);
    const features = settings.features?.flatMap(({ of }, index) => {
      const terms = this.features![index]!.ofPart?.(part, options);
      return terms === undefined ? [] : [{ of, terms }];
    });
    const candidate: AlgorithmOptions | undefined = this.candidate?.algorithm.share(settings.candidate as never, part);
    return new CompiledLimit(options, { ...settings, features, name: this.name, candidate });
  }

  /** The same limit where counters do not live on Redis: without the features that are there only. */
  withoutRedis(): CompiledLimit {
    const { features: all = [] } = this;
    if (all.every(({ onlyWithRedis }) => onlyWithRedis !== true)) return this;
    const features = this.settings.features?.filter((_, index) => all[index]!.onlyWithRedis !== true);
    return new CompiledLimit(this.options, { ...this.settings, features });
  }

  /** The same limit with counters of its own. */
  inNamespace(namespace: string): CompiledLimit {
    if (this.unmet !== this) return this.unmet.inNamespace(namespace).meet(this.metBy);
    return new CompiledLimit(this.options, { ...this.settings, namespace });
  }

  /** The same limit with other options of its algorithm. */
  withOptions(options: AlgorithmOptions): CompiledLimit {
    return new CompiledLimit(options, { ...this.settings, name: this.name });
  }

  /** @deprecated Say `meet({ priority })`. */
  forPriority(priority?: Priority): CompiledLimit {
    return this.meet({ priority });
  }

  /** @deprecated Say `meet({ tenant })`. */
  forTenant(tenant: object | undefined): CompiledLimit {
    return this.meet({ ...this.metBy, tenant } as MetBy);
  }

  /** @deprecated Say `meet({ anchor })`. */
  forAnchor(anchor: unknown): CompiledLimit {
    return this.meet({ ...this.metBy, anchor: anchor ?? null });
  }

  /** @deprecated Say `meet(other.metBy)`. */
  asMet(other: CompiledLimit): CompiledLimit {
    return this.meet(other.metBy);
  }

  /** @deprecated Say `inNamespace(namespace)`. */
  within(namespace: string): CompiledLimit {
    return this.inNamespace(namespace);
  }

  /** @deprecated Say `withoutRedis()`. */
  withoutPrefetch(): CompiledLimit {
    return this.withoutRedis();
  }

  /** @deprecated Say `partOf(part)`. */
  share(part: number): CompiledLimit {
    return this.partOf(part);
  }

  /** @deprecated Say `metBy.tenant`. */
  get tenant(): (Record<'id', string> & Record<'weight', number>) | undefined {
    return (this.metBy as Partial<Record<'tenant', Record<'id', string> & Record<'weight', number>>>).tenant;
  }

  /** @deprecated Say `hasTenants`. */
  get isShared(): boolean {
    return this.hasTenants;
  }

  /** @deprecated Say `unmet`. */
  get ofAllTenants(): CompiledLimit {
    return this.versions === undefined ? this : this.unmet;
  }
}

/** The second version of a limit: like the first in all but its algorithm's options, and in shadow mode. */
function candidateOf(options: AlgorithmOptions, settings: LimitSettings): CompiledLimit {
  const { candidate: _, carry: _none, features: _nor, onStoreError, ...rest } = settings;
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
