import type { LimitDefinition } from '../config/limit-definition.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { NamedLimit } from '../rules/limit-registry.js';
import { algorithmOptions, type Declaration, type RuleCompiler } from '../rules/rule-compiler.js';
import type { KeyedLimits } from '../rules/rule.js';
import { carryOver } from './carry-over.js';
import { afterEnd, KeyOverride } from './key-override.js';
import { KeyTable } from './key-table.js';
import type { LimitOverrideKind } from './override-address.js';
import type { OverrideHolder } from './override-holder.js';
import { isDamaged, isInForce, type OverrideRecord, type StoredRecord } from './override-record.js';
import type { CurrentMode, CurrentRate, KeyOverrides, LimitMode, OverridePage } from './override.js';
import { readPatch, withPatch } from './rate-patch.js';

/** Compiled limits that are kept beyond those in use. */
const MOST_UNUSED = 100;

/** All overrides of a limit: which limit they make of the configured one, for whom. The most specific one wins. */
export class LimitOverrides implements KeyedLimits, OverrideHolder<LimitOverrideKind> {
  /** The limits of the name: only one alone can be overridden. */
  readonly limits: NamedLimit[] = [];
  private all = new KeyOverride('');
  private keys = new KeyTable<KeyOverride>();
  /** Grows with each change that limits of several keys are made of. */
  private epoch = 0;
  /** Equal overrides make one limit. */
  private compiled = new Map<string, CompiledLimit>();
  /** What was logged of records that cannot be used, by kind and key. */
  private readonly logged = new Map<string, string>();

  constructor(
    readonly name: string,
    private readonly compiler: RuleCompiler,
  ) {}

  /** Keys with overrides of their own. */
  get size(): number {
    return this.keys.size;
  }

  limitFor(identity: string): CompiledLimit {
    return this.limitOf(this.keys.find(identity) ?? this.all);
  }

  /** Takes a record over, without effect before `commit`. Returns the time at which it ends. */
  put(kind: LimitOverrideKind, key: string, stored: StoredRecord | undefined, now: number): number | undefined {
    if (stored !== undefined && isDamaged(stored)) this.warn(kind, key, stored.damage);
    const record = stored === undefined || isDamaged(stored) ? undefined : stored;
    const inForce = record !== undefined && isInForce(record, now);
    this.place(kind, key, inForce ? record : afterEnd(record));
    return (inForce ? record.expiresAt : null) ?? undefined;
  }

  /** Ends the overrides of a key whose time is over, without effect before `commit`. */
  expire(kind: LimitOverrideKind, key: string, now: number): void {
    const record = this.at(key)?.[kind];
    if (record !== undefined && record.expiresAt !== null && !isInForce(record, now)) {
      this.place(kind, key, afterEnd(record));
    }
  }

  /** Forgets all records, without effect before `commit`. */
  clear(): void {
    this.all = new KeyOverride('');
    this.keys = new KeyTable();
    this.epoch++;
  }

  /** Lets the limits decide that the records make. */
  commit(): void {
    const [limit, ...others] = this.limits;
    if (limit === undefined || others.length > 0) return;
    if (this.compiled.size > 2 * this.size + MOST_UNUSED) this.forgetUnused();
    limit.rule.decideBy(this.limitOf(this.all), this.size > 0 ? this : undefined);
  }

  /** The rate that holds for a key, or for all identities without overrides of their own. */
  currentRate(key = ''): CurrentRate {
    const { definition, rule } = this.limits[0]!;
    const from = this.chain(key).find(hasRate);
    const override = from?.rateOverride;
    const options = {
      ...algorithmOptions(override === undefined ? definition : withPatch(definition, override.patch)),
    };
    return { name: rule.name, options, source: from?.source ?? 'configured', override };
  }

  /** The mode that holds for a key, or for all identities without overrides of their own. */
  currentMode(key = ''): CurrentMode {
    const { rule } = this.limits[0]!;
    const from = this.chain(key).find(hasMode);
    const mode = from?.mode?.mode ?? (rule.configured.shadow ? 'shadow' : 'enforce');
    return { name: rule.name, mode, source: from?.source ?? 'configured', override: from?.modeOverride };
  }

  /** The quota that a key has under the overrides of others. */
  quotaWithout(key: string): number {
    return this.compile(this.chain(key).filter((each) => each.key !== key)).quota;
  }

  page(cursor: string | undefined, count: number): OverridePage {
    const overrides: KeyOverrides[] = [];
    let last = cursor;
    for (;;) {
      const keys = this.keys.keysAfter(last, count + 1);
      for (const key of keys) {
        const entry = this.keys.get(key)!;
        if (!hasRate(entry) && !hasMode(entry)) continue;
        if (overrides.length === count) return { overrides, next: overrides.at(-1)!.key };
        overrides.push({ key, rate: entry.rateOverride, mode: entry.modeOverride });
      }
      if (keys.length <= count) return { overrides, next: undefined };
      last = keys.at(-1);
    }
  }

  /** The times at which records end. */
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
    if (key !== '' && entry.rate === undefined && entry.mode === undefined) this.keys.delete(key);
  }

  /** What is overridden for a key, the most specific first. */
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
    const { definition, declaration, rule } = this.limits[0]!;
    // Keys of counters that began anew do not come back, whichever override holds now.
    const generation = chain.reduce((sum, { rate }) => sum + (rate?.generation ?? 0), 0);
    const from = chain.find(hasRate);
    const record = from?.rate;
    const mode = chain.find(hasMode)?.mode?.mode ?? undefined;
    if (record === undefined && mode === undefined && generation === 0) return rule.configured;
    const carried = carryOver(record === undefined ? { generation } : { ...record, generation });
    const key = JSON.stringify([record?.patch, carried, mode]);
    const known = this.compiled.get(key);
    if (known !== undefined) return known;
    try {
      const patch = record === undefined ? {} : readPatch(definition, record.patch, declaration.location);
      const patched = withMode(withPatch(definition, patch), mode);
      const whole: Declaration = { ...declaration, ...carried, off: mode === 'off' };
      const { limit } = this.compiler.compile(patched, whole);
      this.compiled.set(key, limit);
      return limit;
    } catch (error) {
      // Another release may write records for other configurations.
      this.warn('rate', from!.key, error instanceof Error ? error.message : String(error));
      from!.rate = afterEnd(record);
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

/** The most records of a limit that are logged. */
const MOST_LOGGED = 100;

const hasRate = ({ rate }: KeyOverride) => (rate?.patch ?? null) !== null;
const hasMode = ({ mode }: KeyOverride) => (mode?.mode ?? null) !== null;

function withMode(definition: LimitDefinition, mode: LimitMode | undefined): LimitDefinition {
  return mode === 'enforce' || mode === 'shadow' ? { ...definition, mode } : definition;
}
