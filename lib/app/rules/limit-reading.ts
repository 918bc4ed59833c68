import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import { type AlgorithmOptions, algorithms } from '../../engine/algorithms/index.js';
import { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { LimitPlace, LimitSettings } from '../../engine/limits/limit-settings.js';
import type { LikelySeconds } from '../../engine/options/check-options.js';
import { Rule, type RuleSettings, waitsForEnd } from './rule.js';

/** Limits with equal options and settings, regardless of the place of their declaration. */
export class LimitKind {
  private latest: CompiledLimit | undefined;
  /** Equal limits share one object, so that stores can share what they cache for them. */
  private byNamespace: Map<string, CompiledLimit> | undefined;

  constructor(
    private readonly options: AlgorithmOptions,
    /** Has no prototype: all limits of this kind share the object. */
    private readonly settings: Omit<LimitSettings, keyof LimitPlace>,
    private readonly hasRedis: boolean,
  ) {}

  /** The algorithm that decides; `undefined` if features or a parent may change that. */
  get algorithm(): Algorithm | undefined {
    const { features = [], parent } = this.settings;
    return features.length > 0 || parent !== undefined ? undefined : algorithms.for(this.options);
  }

  /** The limit for a place. On routes, each place has its own namespace. Throws `RateLimitConfigError`. */
  limit(place: Required<LimitPlace>, onRoutes: boolean): CompiledLimit {
    if (onRoutes) return this.inPlace(place);
    const known = (this.byNamespace ??= new Map<string, CompiledLimit>());
    const limit = known.get(place.namespace) ?? this.inPlace(place);
    known.set(place.namespace, limit);
    return limit;
  }

  private inPlace(place: Required<LimitPlace>): CompiledLimit {
    if (this.latest !== undefined) return (this.latest = this.latest.inPlace(place));
    const compiled = new CompiledLimit(this.options, this.settings as LimitSettings, undefined, place);
    return (this.latest = this.hasRedis ? compiled : compiled.withoutRedis());
  }
}

/** The parts of a limit that are the same wherever it is declared, and its rules for places that aren't routes. */
export class LimitReading {
  /** Its rules by namespace, cached because functions may return equal limits again and again. */
  private rules: Map<string, Rule> | undefined;
  /** A rule without a place, for questions that are asked before the limit is declared anywhere. */
  anywhere: Rule | undefined;

  constructor(
    readonly kind: LimitKind,
    /** The option, if any, that requires a name that is the same everywhere. */
    readonly needsName: string | undefined,
    /** The numbers in it that are most likely meant as seconds. */
    readonly likelySeconds: readonly LikelySeconds[],
    private settings: RuleSettings,
  ) {}

  /** True if its rules need the interceptor after the guards; `undefined` if that depends on more than its options. */
  get needsInterceptor(): boolean | undefined {
    const { algorithm } = this.kind;
    if (this.settings.phase === 'authenticated' || waitsForEnd(this.settings, algorithm)) return true;
    return algorithm === undefined ? undefined : false;
  }

  /** True if nothing but its counters depends on the route that declares it, so that its rule for a route can't be wrong. */
  get isAlikeOnRoutes(): boolean {
    return this.needsName === undefined && this.needsInterceptor === false;
  }

  /** Its rule for a namespace that isn't a route's, if it is cached. */
  known(namespace: string): Rule | undefined {
    return this.rules?.get(namespace);
  }

  keep(namespace: string, rule: Rule): void {
    (this.rules ??= new Map<string, Rule>()).set(namespace, rule);
  }

  /** Creates its rule for a place. Throws `RateLimitConfigError`. */
  rule(place: Required<LimitPlace>, onRoutes: boolean): Rule {
    const limit = this.kind.limit(place, onRoutes);
    const { priority } = this.settings;
    // The priority isn't computed if nothing depends on it.
    if (priority !== undefined && !limit.keepsUnits && !limit.adapts) {
      this.settings = { ...this.settings, priority: undefined };
    }
    return new Rule(limit, this.settings);
  }
}
