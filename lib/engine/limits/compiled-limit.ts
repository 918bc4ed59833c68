import {
  type CompiledVersion,
  type FeatureTerms,
  FirstUse,
  type MetBy,
  type Version,
  type Versions,
  versionsOf,
} from './limit-feature.js';
import { asksForAnchor } from '../algorithms/anchor.js';
import type { AlgorithmOptions } from '../algorithms/index.js';
import { RecentMap } from '../util/bounded-maps.js';
import type { LimitPlace, LimitSettings } from './limit-settings.js';
import { LimitTerms, type PlaceLikeAnother } from './limit-terms.js';

const BY_ANYBODY: MetBy = {};

/** The versions of a limit for requests with different traits, and those used so far. */
interface KnownVersions {
  readonly versions: Versions;
  readonly met: RecentMap<CompiledLimit>;
}

/** Notes the first limit with a candidate. */
export const candidateUse = new FirstUse();

/**
 * A limit whose options have been read, in the form that stores use. Depending on its traits, a request may `meet` a different version of
 * it. `whole` is the version whose counter is used, and `quota` the number of units that this version may use.
 */
export class CompiledLimit extends LimitTerms {
  /** A second version, which is counted in the same call with its own counters, and never rejects. */
  readonly candidate: CompiledLimit | undefined;
  /** The traits of the requests that use this version. */
  readonly metBy: MetBy;
  /** Identifies the queue in which calls that use this version wait, if it has its own. */
  readonly line: string | undefined;
  /** The limit with its full quota, if a part of it is reserved for requests other than those of this version; otherwise itself. */
  readonly whole: CompiledLimit;
  /** The limit that this is a version of; otherwise itself. */
  readonly unmet: CompiledLimit;
  /** @internal True if a check never involves anything but its own counter. It is read by each check. */
  readonly isPlain: boolean;
  /** The versions that its features provide for different requests, if any do. */
  private readonly versions: readonly KnownVersions[] | undefined;

  /**
   * Reads the options. Throws `RateLimitConfigError`.
   *
   * @param options those of the algorithm
   * @param given all others
   * @param metBy the traits of the requests that use it
   * @param place the place of its declaration, if `given` are settings that it shares with a limit in another place
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
    this.isPlain =
      this.versions === undefined && this.candidate === undefined && this.parent === undefined && !this.off;
  }

  /** True if it depends on the priority of requests. */
  get keepsUnits(): boolean {
    return this.versions?.some(({ versions }) => versions.byPriority === true) === true;
  }

  /** True if tenants share its units. */
  get hasTenants(): boolean {
    return this.versions?.some(({ versions }) => versions.notReservable !== undefined) === true;
  }

  /**
   * The version for requests with these traits; itself, if all requests use the same version. Throws `RateLimitArgumentError` if a feature
   * cannot read the traits.
   */
  meet(by: MetBy): CompiledLimit {
    return this.versions === undefined ? this : this.versionFor(by);
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
    // All versions of all limits have the same shape, so that reading them is fast.
    const version = Object.setPrototypeOf(own, CompiledLimit.prototype) as CompiledLimit;
    return isPart ? version : Object.assign(version, { whole: version });
  }

  /**
   * The limit with a part of its rate and quota, at least one unit: the part that one of several instances may allow by itself. It keeps
   * the features that decide.
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

  /** The limit for stores other than Redis: without the features that only exist on Redis. */
  withoutRedis(): CompiledLimit {
    const { features: all = [] } = this;
    if (all.every(({ onlyWithRedis }) => onlyWithRedis !== true)) return this;
    const features = this.settings.features?.filter((_, index) => all[index]!.onlyWithRedis !== true);
    return new CompiledLimit(this.options, { ...this.ownSettings, features });
  }

  /** The limit with other features. */
  withFeatures(features: readonly FeatureTerms[]): CompiledLimit {
    return new CompiledLimit(this.options, { ...this.ownSettings, features });
  }

  /** The limit with its own counters. */
  inNamespace(namespace: string): CompiledLimit {
    if (this.unmet !== this) return this.unmet.inNamespace(namespace).meet(this.metBy);
    return this.inPlace({ location: this.location, namespace });
  }

  /** @internal The limit in another place: it has its own counters, and shares everything that does not depend on the place. */
  inPlace({ location, namespace }: Required<LimitPlace>): CompiledLimit {
    return new CompiledLimit(this.options, this.settings, undefined, { location, namespace, like: this });
  }

  private get ownSettings(): LimitSettings {
    const { location, namespace } = this;
    return { ...this.settings, location, namespace };
  }

  /** The limit with other options of its algorithm. */
  withOptions(options: AlgorithmOptions): CompiledLimit {
    return new CompiledLimit(options, { ...this.ownSettings, name: this.name });
  }

  /** The limit's second version: the same except for the options of its algorithm, and in shadow mode. */
  private candidateOf(options: AlgorithmOptions): CompiledLimit {
    const { candidate: _, carry: _none, features, onStoreError, ...rest } = this.ownSettings;
    return new CompiledLimit(options, {
      ...rest,
      name: this.name,
      location: `${rest.location}.candidate`,
      shadow: true,
      isCandidate: true,
      features: features?.filter((__, index) => this.features![index]!.versions !== undefined),
      // A function of the user is only called for the limit itself.
      ...(typeof onStoreError === 'string' && { onStoreError }),
    });
  }

  /** True if a function of the request determines the start of windows, but this version is used without its result. */
  get asksForAnchor(): boolean {
    return asksForAnchor(this.options);
  }
}

/**
 * Maximum work of one call, and of one check. The unit is the work of a check of a plain counter: about a microsecond of the server, which
 * does nothing else in that time.
 */
export const MAX_WORK = 2500;

/** The work of a check of a limit for the server, in checks of a plain counter. */
export function workOf({ algorithm, parameters, features = [], together }: CompiledLimit): number {
  let work = algorithm.work?.(parameters) ?? 1;
  for (const { script } of features) work += script?.work ?? 0;
  return work + (together?.work ?? 0);
}
