import type { LimitDefinition } from '../../../app/config/limit-definition.js';
import type { LimitRegistry } from '../../../app/rules/limit-registry.js';
import type { Rule } from '../../../app/rules/rule.js';
import { configError } from '../../../engine/errors/errors.js';
import { outboundMessages } from '../../../engine/errors/messages/outbound.js';
import { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { refuseUnknown } from '../../../engine/options/check-options.js';
import { MAX_INTERVAL_MS } from '../../../engine/options/values.js';
import { BoundedMap, Kept } from '../../../engine/util/bounded-maps.js';
import { asObject } from '../../../engine/util/objects.js';
import type { LearntRate, RateLesson } from '../../../storage/stores/lesson.js';

/** The part of a rule that calls need, for configured and for learned rates. */
export type OutboundRule = Pick<Rule, 'name' | 'limit' | 'usualLimit' | 'onChange' | 'fixedCost' | 'fixedPriority'>;

/** The limit and the rate of a key before anything was learned about it: one call per second. */
const FIRST_LIMIT = { algo: 'gcra', rate: 60, interval: 60_000, burst: 1 } as const;
const FIRST_RATE: LearntRate = { rate: FIRST_LIMIT.rate, intervalMs: FIRST_LIMIT.interval, burst: FIRST_LIMIT.burst };
/** The longest time between two calls, no matter how slow the upstream seems. */
const SLOWEST_MS = 60_000;
/** The largest cost that a limit without a rate allows. */
const LARGEST_COST = 1e9;
/** The largest weight that any scale of the algorithm has. */
const MOST_WEIGHT = 2 ** 52 - 1;
/** Maximum number of keys to remember, and the bytes that they may take; the least recently used is evicted first. */
const MAX_KEYS = 10_000;
const MAX_BYTES = 20_000_000;
const KEY_BYTES = 1000;

class LearnedKey extends Kept {
  largest = 1;
  rate = FIRST_RATE;

  constructor(
    key: string,
    public limit: CompiledLimit,
  ) {
    super(key);
  }
}

/** A limit without a configured rate. The store returns the rate of a key, as learned by all instances of the app. */
export class LearnedRule implements OutboundRule {
  readonly fixedCost = 1;
  readonly fixedPriority = undefined;
  private readonly keys = new BoundedMap<LearnedKey>(MAX_KEYS, MAX_BYTES);
  private slowestMs = SLOWEST_MS;

  /** `limit` applies to keys about which nothing was learned yet. */
  constructor(readonly limit: CompiledLimit) {}

  get name(): string {
    return this.limit.name;
  }

  usualLimit(identity: string): CompiledLimit {
    return this.keys.get(identity)?.limit ?? this.limit;
  }

  /** Its rate changes only by learning, after which waiting calls check again anyway. */
  onChange(): void {}

  waitAtMost(ms: number): void {
    this.slowestMs = Math.min(this.slowestMs, ms);
  }

  /** Records the cost of a call that is about to be sent. */
  noteCost(identity: string, cost: number): void {
    const known = this.keys.get(identity);
    if (known === undefined ? cost <= 1 : cost <= known.largest) return;
    const key = known ?? new LearnedKey(identity, this.limit);
    key.largest = Math.min(cost, LARGEST_COST);
    this.keep(key, key.rate);
  }

  /** The facts to report about a key in addition to the lesson of a response. */
  lessonOf(identity: string): Pick<RateLesson, 'largest' | 'slowestMs'> {
    return { largest: this.keys.get(identity)?.largest ?? 1, slowestMs: this.slowestMs };
  }

  /** Applies the rate that all instances have learned. */
  learn(identity: string, rate: LearntRate): void {
    this.keep(this.keys.get(identity) ?? new LearnedKey(identity, this.limit), rate);
  }

  private keep(key: LearnedKey, { rate, intervalMs, burst }: LearntRate): void {
    const interval = Math.min(intervalMs, MAX_INTERVAL_MS);
    const most = Math.min(Math.max(burst, key.largest), Math.floor(MOST_WEIGHT / interval));
    const before = key.limit.options as { rate: number; interval: number; burst: number };
    if (before.rate !== rate || before.interval !== interval || before.burst !== most) {
      key.limit = this.limit.withOptions({ algo: 'gcra', rate, interval, burst: most });
    }
    key.rate = { rate, intervalMs, burst };
    this.keys.put(key, KEY_BYTES + 2 * key.key.length, false);
  }
}

const KNOWN = ['algo', 'name'] as const;

export class LearnedRules {
  private readonly byName = new Map<string, LearnedRule>();
  private readonly byLineage = new Map<string, LearnedRule>();

  constructor(private readonly registry: LimitRegistry) {}

  /** Returns true for the definition of a limit with a learned rate. */
  static defines(definition: unknown): boolean {
    return asObject<{ readonly algo?: unknown }>(definition)?.algo === 'learned';
  }

  /** The rule of a definition; each name has only one. Throws `RateLimitConfigError`. */
  rule(definition: object, location: string): LearnedRule {
    refuseUnknown(location, definition, KNOWN);
    const { name } = definition as { name?: unknown };
    const known = this.byName.get(name as string);
    if (known !== undefined) return known;
    if (name === undefined) throw configError('SLUICE_MISSING_OPTION', outboundMessages.learnedWithoutName(location));
    if (this.registry.has(name as string)) {
      throw configError('SLUICE_DUPLICATE_LIMIT', outboundMessages.learnedIsDefined(location, name as string));
    }
    const { configured } = this.registry.rule({ ...FIRST_LIMIT, name } as LimitDefinition, { location, namespace: '' });
    const { shadow, onStoreError } = configured;
    const rule = new LearnedRule(
      new CompiledLimit(FIRST_LIMIT, { location, name: configured.name, shadow, onStoreError }),
    );
    this.byName.set(rule.name, rule);
    this.byLineage.set(rule.limit.lineage, rule);
    return rule;
  }

  /** The rule that a limit belongs to, if its rate is learned. */
  of({ lineage }: CompiledLimit): LearnedRule | undefined {
    return this.byLineage.get(lineage);
  }
}
