import type { LimitDefinition } from '../config/limit-definition.js';
import type { PolicyLimit, PolicyOverride } from '../config/policy.js';
import { logger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { secondVersion } from '../../storage/features/options.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { NamedLimit } from '../rules/limit-registry.js';
import { algorithmOptions } from '../rules/common-options.js';
import type { Declaration } from '../rules/declaration.js';
import type { RuleCompiler } from '../rules/rule-compiler.js';
import type { KeyedLimits } from '../rules/rule.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import { carryOver, readPatch, withPatch } from './rate-patch.js';
import { afterEnd, KeyOverride } from './key-override.js';
import { KeyTable } from './key-table.js';
import type { LimitOverrideKind } from './override-address.js';
import {
  isDamaged,
  isInForce,
  type OverrideHolder,
  type OverrideRecord,
  type StoredRecord,
} from './override-record.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { CurrentMode, CurrentRate, KeyOverrides, OverridePage } from './override.js';

/** The maximum number of unused compiled limits to keep. */
const MOST_UNUSED = 100;

/** All overrides of a limit. For each key, the most specific one decides which limit applies instead of the configured one. */
export class LimitOverrides implements KeyedLimits, OverrideHolder<LimitOverrideKind> {
  /** The limit of this name; `undefined` if only other apps have it. */
  limit: NamedLimit | undefined;
  private all = new KeyOverride('');
  private keys = new KeyTable<KeyOverride>();
  /** Increases with each change that affects the limits of several keys. */
  private epoch = 0;
  /** Equal overrides share one compiled limit. */
  private compiled = new Map<string, CompiledLimit>();
  /** The messages logged about unusable records, by kind and key. */
  private readonly logged = new Map<string, string>();

  constructor(
    readonly name: string,
    private readonly compiler: RuleCompiler,
  ) {}

  /** The number of keys with overrides. */
  get size(): number {
    return this.keys.size;
  }

  limitFor(identity: string): CompiledLimit {
    return this.limitOf(this.keys.find(identity) ?? this.all);
  }

  /** Takes a record, which has no effect before `commit`. Returns the time at which it expires. */
  put(kind: LimitOverrideKind, key: string, stored: StoredRecord | undefined, now: number): number | undefined {
    if (stored !== undefined && isDamaged(stored)) this.warn(kind, key, stored.damage);
    const record = stored === undefined || isDamaged(stored) ? undefined : stored;
    const inForce = record !== undefined && isInForce(record, now);
    this.place(kind, key, inForce ? record : afterEnd(record));
    return (inForce ? record.expiresAt : null) ?? undefined;
  }

  /** Ends the overrides of a key that have expired; no effect before `commit`. */
  expire(kind: LimitOverrideKind, key: string, now: number): void {
    const record = this.at(key)?.[kind];
    if (record !== undefined && record.expiresAt !== null && !isInForce(record, now)) {
      this.place(kind, key, afterEnd(record));
    }
  }

  /** Drops all records; no effect before `commit`. */
  clear(): void {
    const { all, keys } = this;
    this.all = all.withoutRecords;
    this.keys = new KeyTable();
    for (const entry of keys.values()) if (entry.policy !== undefined) this.keys.set(entry.key, entry.withoutRecords);
    this.epoch++;
  }

  /** Replaces the policy's overrides; no effect before `commit`. */
  takePolicy(overrides: readonly PolicyOverride[]): void {
    for (const entry of this.keys.values()) {
      entry.policy = undefined;
      if (entry.isEmpty) this.keys.delete(entry.key);
    }
    for (const { key, patch, mode, place } of overrides) {
      const entry = this.keys.get(key) ?? new KeyOverride(key);
      entry.policy = { patch, mode, place };
      this.keys.set(key, entry);
    }
    this.compiled.clear();
    this.epoch++;
  }

  /** Applies the limits that result from the records. */
  commit(): void {
    if (this.limit === undefined) return;
    const { policy, rule } = this.limit;
    // The definition already contains the options of the policy.
    this.all.policy =
      policy?.mode === undefined ? undefined : { patch: undefined, mode: policy.mode, place: policy.place };
    if (this.compiled.size > 2 * this.size + MOST_UNUSED) this.forgetUnused();
    rule.decideBy(this.limitOf(this.all), this.size > 0 ? this : undefined);
  }

  /** The rate that applies to a key, or to all keys without overrides. */
  currentRate(key = ''): CurrentRate {
    const { definition, policy, rule } = this.limit!;
    const from = this.chain(key).find(hasRate);
    const override = from?.rateOverride;
    const current = withPatch(definition, from?.patch ?? {});
    const candidate = secondVersion?.optionsOf(current as never);
    const rate = {
      name: rule.name,
      options: { ...algorithmOptions(current) },
      ...(candidate !== undefined && { candidate: { ...candidate } }),
      override,
    };
    if (override !== undefined) return { ...rate, source: from!.source };
    const place = from === undefined ? ratePlace(policy) : from.policy?.place;
    return place === undefined ? { ...rate, source: 'configured' } : { ...rate, source: 'policy', policy: place };
  }

  /** The mode that applies to a key, or to all keys without overrides. */
  currentMode(key = ''): CurrentMode {
    const { rule, limit } = this.limit!;
    const from = this.chain(key).find(hasMode);
    const override = from?.modeOverride;
    const mode = { name: rule.name, mode: from?.overridingMode ?? limit.mode, override };
    if (override !== undefined) return { ...mode, source: from!.source };
    return from === undefined
      ? { ...mode, source: 'configured' }
      : { ...mode, source: 'policy', policy: from.policy!.place };
  }

  /** The quota that a key would have without its own override. */
  quotaWithout(key: string): number {
    return this.compile(this.chain(key).map((each) => (each.key === key ? each.withoutRecords : each))).quota;
  }

  page(cursor: string | undefined, count: number): OverridePage {
    const overrides: KeyOverrides[] = [];
    let last = cursor;
    for (;;) {
      const keys = this.keys.keysAfter(last, count + 1);
      for (const key of keys) {
        const entry = this.keys.get(key)!;
        if (entry.rateOverride === undefined && entry.modeOverride === undefined) continue;
        if (overrides.length === count) return { overrides, next: overrides.at(-1)!.key };
        overrides.push({ key, rate: entry.rateOverride, mode: entry.modeOverride });
      }
      if (keys.length <= count) return { overrides, next: undefined };
      last = keys.at(-1);
    }
  }

  *expiries(): Iterable<[at: number, kind: LimitOverrideKind, key: string]> {
    for (const entry of [this.all, ...this.keys.values()]) {
      for (const kind of ['rate', 'mode'] as const) {
        const expiresAt = entry[kind]?.expiresAt;
        if (typeof expiresAt === 'number') yield [expiresAt, kind, entry.key];
      }
    }
  }

  private at(key: string): KeyOverride | undefined {
    return key === '' ? this.all : this.keys.get(key);
  }

  private place(kind: LimitOverrideKind, key: string, record: OverrideRecord | undefined): void {
    let entry = this.at(key);
    if (entry === undefined) {
      if (record === undefined) return;
      entry = new KeyOverride(key);
      this.keys.set(key, entry);
    }
    entry[kind] = record;
    entry.limit = undefined;
    if (entry.source !== 'key') this.epoch++;
    if (key !== '' && entry.isEmpty) this.keys.delete(key);
  }

  /** The overrides that apply to a key, the most specific first. */
  private chain(key: string): KeyOverride[] {
    return key === '' ? [this.all] : [...this.keys.all(key), this.all];
  }

  private limitOf(entry: KeyOverride): CompiledLimit {
    if (entry.limit === undefined || entry.epoch !== this.epoch) {
      entry.limit = this.compile(this.chain(entry.key));
      entry.epoch = this.epoch;
    }
    return entry.limit;
  }

  private compile(chain: readonly KeyOverride[]): CompiledLimit {
    const { definition, declaration, limit: configured } = this.limit!;
    // Restarts of counters add up and are never undone, regardless of the override that applies now.
    const generation = chain.reduce((sum, { rate }) => sum + (rate?.generation ?? 0), 0);
    const from = chain.find(hasRate);
    const record = (from?.rate?.patch ?? null) === null ? undefined : from?.rate;
    const mode = chain.find(hasMode)?.overridingMode;
    if (from === undefined && mode === undefined && generation === 0) return configured;
    const carried = carryOver(generation, record);
    const key = JSON.stringify([from?.patch, carried, mode]);
    const known = this.compiled.get(key);
    if (known !== undefined) return known;
    try {
      const patch = from?.patch === undefined ? {} : readPatch(definition, from.patch, declaration.location);
      const patched = withMode(withPatch(definition, patch), mode);
      const whole: Declaration = { ...declaration, ...carried, off: mode === 'off' };
      const { limit } = this.compiler.compile(patched, whole);
      this.compiled.set(key, limit);
      return limit;
    } catch (error) {
      // Another release may write records for other configurations.
      this.warn('rate', from!.key, reasonOf(error));
      if (record === undefined) from!.policy = undefined;
      else from!.rate = afterEnd(record);
      return this.compile(chain);
    }
  }

  private forgetUnused(): void {
    const used = new Set([this.all, ...this.keys.values()].map(({ limit }) => limit));
    this.compiled = new Map([...this.compiled].filter(([, limit]) => used.has(limit)));
  }

  private warn(kind: LimitOverrideKind, key: string, reason: string): void {
    const of = `${kind}\n${key}`;
    if (this.logged.get(of) === reason || this.logged.size >= MOST_LOGGED) return;
    this.logged.set(of, reason);
    logger.warn(messages.overrideIgnored(kind, this.name, key, reason));
  }
}

/** The maximum number of records to log per limit. */
const MOST_LOGGED = 100;

const hasRate = ({ patch }: KeyOverride) => patch !== undefined;
const hasMode = ({ overridingMode }: KeyOverride) => overridingMode !== undefined;

/** The place in the policy that sets a limit's rate. */
function ratePlace(policy: PolicyLimit | undefined): string | undefined {
  if (policy === undefined) return undefined;
  const options = policy.options as LimitDefinition;
  const saysSecond = secondVersion !== undefined && secondVersion.option in options;
  return saysSecond || Object.keys(algorithmOptions(options)).length > 0 ? policy.place : undefined;
}

function withMode(definition: LimitDefinition, mode: LimitMode | undefined): LimitDefinition {
  return mode === 'enforce' || mode === 'shadow' ? { ...definition, mode } : definition;
}
