import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import { CompiledLimit, type LimitPlace, type LimitSettings } from '../../engine/limits/compiled-limit.js';
import type { RuleSettings } from './rule-settings.js';

let lastId = 0;

/** Limits with equal options and settings, wherever they are declared. */
export class LimitKind {
  /** Stands for it in texts. */
  readonly id = ++lastId;
  private first: CompiledLimit | undefined;

  constructor(
    private readonly options: AlgorithmOptions,
    private readonly settings: Omit<LimitSettings, keyof LimitPlace>,
    private readonly hasRedis: boolean,
  ) {}

  /** The limit in a place. Throws `RateLimitConfigError`. */
  limit(place: Required<LimitPlace>): CompiledLimit {
    if (this.first !== undefined) return this.first.inPlace(place);
    const compiled = new CompiledLimit(this.options, { ...this.settings, ...place });
    return (this.first = this.hasRedis ? compiled : compiled.withoutRedis());
  }
}

/** What was read of a limit, as far as it is the same wherever it is declared. */
export class LimitReading {
  /** Stands for it in texts. */
  readonly id = ++lastId;
  private settings: RuleSettings | undefined;

  constructor(
    readonly kind: LimitKind,
    /** An option because of which it needs a name that is the same everywhere, if it has one. */
    readonly needsName: string | undefined,
    private settingsOf: ((limit: CompiledLimit) => RuleSettings) | undefined,
  ) {}

  /** The settings of its rules. */
  settingsFor(limit: CompiledLimit): RuleSettings {
    if (this.settings === undefined) {
      this.settings = this.settingsOf!(limit);
      // It keeps all that was read.
      this.settingsOf = undefined;
    }
    return this.settings;
  }
}
