import { FirstUse } from '../util/first-use.js';
import { asksForAnchor } from '../algorithms/anchor.js';
import type { AlgorithmOptions } from '../algorithms/index.js';
import { RecentMap } from '../util/recent-map.js';
import {
  type CompiledVersion,
  type FeatureTerms,
  type MetBy,
  type Version,
  type Versions,
  versionsOf,
} from './limit-feature.js';
import type { LimitPlace, LimitSettings } from './limit-settings.js';
import { LimitTerms, type PlaceLikeAnother } from './limit-terms.js';

export {
  type CarryOver,
  type Escalation,
  type LimitPlace,
  type LimitSettings,
  type OnStoreError,
  STORE_ERROR_POLICIES,
  type StoreErrorPolicy,
  type UnansweredCheck,
} from './limit-settings.js';
export type { MetBy } from './limit-feature.js';

const BY_ANYBODY: MetBy = {};

/** Versions of a limit, and those of them that requests have met. */
interface KnownVersions {
  readonly versions: Versions;
  readonly met: RecentMap<CompiledLimit>;
}

/** The first limit with a candidate. */
export const candidateUse = new FirstUse();

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
  /** The limit with all of its quota, if a part of it is kept from the requests that meet this one; else itself. */
  readonly whole: CompiledLimit;
  /** The limit of which this one is a version for some requests; else itself. */
  readonly unmet: CompiledLimit;
  /** Whether all requests meet it alike. */
  private readonly isAlike: boolean;
  /** @internal Whether a check of it concerns nothing but its own counter, whoever asks. Each check reads it. */
  readonly isPlain: boolean;
  /** The versions that requests meet by its features, if they do so in different ones. */
  private readonly versions: readonly KnownVersions[] | undefined;

  /**
   * Reads the options. Throws `RateLimitConfigError`.
   *
   * @param options those of the algorithm
   * @param given all others
   * @param metBy what the requests say of themselves that meet it
   * @param place where it is declared, if `given` are settings that it shares with a limit in another place
   */
  constructor(options: AlgorithmOptions, given: LimitSettings, metBy: MetBy = BY_ANYBODY, place?: PlaceLikeAnother) {
    super(options, given, place);
    const { candidate } = this.settings;
    const all = versionsOf(this);
    if (all.length > 0) this.versions = all.map((versions) => ({ versions, met: new RecentMap() }));
    this.unmet = this.whole = this;
    this.metBy = all.reduce((by, { ofAll }) => (ofAll === undefined ? by : { ...by, ...ofAll }), metBy);
    this.candidate = candidate && this.candidateOf(candidate);
    if (candidate !== undefined) candidateUse.note();
    this.isAlike = this.versions === undefined;
    this.isPlain = this.isAlike && this.candidate === undefined && this.parent === undefined && !this.off;
  }

  /** Whether the priority of requests matters to it. */
  get keepsUnits(): boolean {
    return this.versions?.some(({ versions }) => versions.byPriority === true) === true;
  }

  /** Whether its units are shared among tenants. */
  get hasTenants(): boolean {
    return this.versions?.some(({ versions }) => versions.notReservable !== undefined) === true;
  }

  /**
   * The version of it that requests meet which say this of themselves; itself, if all meet it alike. Throws `RateLimitArgumentError` if
   * a feature cannot read what they say.
   */
  meet(by: MetBy): CompiledLimit {
    return this.isAlike ? this : this.versionFor(by);
  }

  private versionFor(by: MetBy): CompiledLimit {
    const { unmet } = this;
    for (const { versions, met } of unmet.versions!) {
      const id = versions.idOf(by);
      if (id === undefined) continue;
      const found = met.get(id) ?? unmet.made(versions, met, id, by);
      return found.unmet === unmet ? found : found.meet(by);
    }
    return this;
  }

  private made(versions: Versions, met: RecentMap<CompiledLimit>, id: string, by: MetBy): CompiledLimit {
    return met.of(id, () => {
      const version = versions.make(this.parameters, by);
      if (version === undefined) return this;
      const isCompiled = Object.hasOwn(version, 'options');
      return isCompiled ? this.compiledBy(version as CompiledVersion) : this.versionOf(version as Version);
    })!;
  }

  private compiledBy(version: CompiledVersion): CompiledLimit {
    const { ownSettings: settings, name } = this;
    const candidate = settings.candidate && version.options(settings.candidate);
    return new CompiledLimit(version.options(this.options), { ...settings, name, candidate }, version.metBy);
  }

  private versionOf({ parameters, metBy, line, isPart = false }: Version): CompiledLimit {
    const own = {
      ...(this as object),
      parameters,
      nearFrom: this.nearFromOf(parameters.quota),
      metBy: { ...this.metBy, ...metBy },
      line,
      candidate: this.candidate?.meet(metBy),
    };
    // All versions of all limits have one shape, which is faster to read.
    const version = Object.setPrototypeOf(own, CompiledLimit.prototype) as CompiledLimit;
    return isPart ? version : Object.assign(version, { whole: version });
  }

  /**
   * The same limit with a part of its rate and quota, at least one unit: what one of several instances
   * may allow by itself, with the features that decide.
   */
  partOf(part: number): CompiledLimit {
    if (this.unmet !== this) return this.unmet.partOf(part).meet(this.metBy);
    const { carry: _, ...settings } = this.ownSettings;
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
    return new CompiledLimit(this.options, { ...this.ownSettings, features });
  }

  /** The same limit with other features. */
  withFeatures(features: readonly FeatureTerms[]): CompiledLimit {
    return new CompiledLimit(this.options, { ...this.ownSettings, features });
  }

  /** The same limit with counters of its own. */
  inNamespace(namespace: string): CompiledLimit {
    if (this.unmet !== this) return this.unmet.inNamespace(namespace).meet(this.metBy);
    return this.inPlace({ location: this.location, namespace });
  }

  /** @internal The same limit, declared in another place: it has counters of its own, and shares what does not depend on the place. */
  inPlace({ location, namespace }: Required<LimitPlace>): CompiledLimit {
    return new CompiledLimit(this.options, this.settings, undefined, { location, namespace, like: this });
  }

  private get ownSettings(): LimitSettings {
    const { location, namespace } = this;
    return { ...this.settings, location, namespace };
  }

  /** The same limit with other options of its algorithm. */
  withOptions(options: AlgorithmOptions): CompiledLimit {
    return new CompiledLimit(options, { ...this.ownSettings, name: this.name });
  }

  /** The second version of it: like the first in all but its algorithm's options, and in shadow mode. */
  private candidateOf(options: AlgorithmOptions): CompiledLimit {
    const { candidate: _, carry: _none, features, onStoreError, ...rest } = this.ownSettings;
    return new CompiledLimit(options, {
      ...rest,
      name: this.name,
      location: `${rest.location}.candidate`,
      shadow: true,
      isCandidate: true,
      features: features?.filter((__, index) => this.features![index]!.versions !== undefined),
      // A function of the user's is asked of the limit alone.
      ...(typeof onStoreError === 'string' && { onStoreError }),
    });
  }

  /** Whether a function of the request sets where its windows begin, and this version is used without its result. */
  get asksForAnchor(): boolean {
    return asksForAnchor(this.options);
  }
}
