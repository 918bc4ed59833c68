import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import { CompiledLimit, type LimitPlace, type LimitSettings } from '../../engine/limits/compiled-limit.js';
import type { LikelySeconds } from '../../engine/options/likely-seconds.js';
import { Rule, type RuleSettings } from './rule.js';

/** Limits with equal options and settings, wherever they are declared. */
export class LimitKind {
  private latest: CompiledLimit | undefined;
  /** Equal limits share one object, so that stores can share what they know about them. */
  private byNamespace: Map<string, CompiledLimit> | undefined;

  constructor(
    private readonly options: AlgorithmOptions,
    /** Without a prototype: all of them share it. */
    private readonly settings: Omit<LimitSettings, keyof LimitPlace>,
    private readonly hasRedis: boolean,
  ) {}

  /** The limit in a place. On routes each place has a namespace of its own. Throws `RateLimitConfigError`. */
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

/** What was read of a limit, as far as it is the same wherever it is declared, and its rules in places that are not routes. */
export class LimitReading {
  /** Its rules by namespace: functions may make equal limits again and again. */
  private rules: Map<string, Rule> | undefined;
  /** A rule of it as if it were declared nowhere, until it is declared somewhere. */
  anywhere: Rule | undefined;

  constructor(
    readonly kind: LimitKind,
    /** An option because of which it needs a name that is the same everywhere, if it has one. */
    readonly needsName: string | undefined,
    /** Numbers in it that are most likely meant as seconds. */
    readonly likelySeconds: readonly LikelySeconds[],
    private settings: RuleSettings,
  ) {}

  /** Its rule in a namespace that isn't a route's, if it was kept. */
  known(namespace: string): Rule | undefined {
    return this.rules?.get(namespace);
  }

  keep(namespace: string, rule: Rule): void {
    (this.rules ??= new Map<string, Rule>()).set(namespace, rule);
  }

  /** Makes its rule in a place. Throws `RateLimitConfigError`. */
  rule(place: Required<LimitPlace>, onRoutes: boolean): Rule {
    const limit = this.kind.limit(place, onRoutes);
    const { priority } = this.settings;
    // If it does not matter, it is not computed.
    if (priority !== undefined && !limit.keepsUnits && !limit.adapts) {
      this.settings = { ...this.settings, priority: undefined };
    }
    return new Rule(limit, this.settings);
  }
}
