import { Inject, Injectable } from '@nestjs/common';
import { OVERRIDE_STORE } from '../config/tokens.js';
import { RateLimitConfigError, RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { LimitRegistry, type NamedLimit } from '../rules/limit-registry.js';
import { RuleCompiler } from '../rules/rule-compiler.js';
import { ExpiryQueue } from '../util/expiry-queue.js';
import { LongTimeout } from '../util/long-timeout.js';
import { readClearOptions, readPageOptions, readQuery, readRateOptions } from './change-options.js';
import { LimitOverrides } from './limit-overrides.js';
import { addressOf, type OverrideKind } from './override-address.js';
import type { OverrideStore, OverrideUpdate } from './override-store.js';
import type { CurrentRate, OverridePage } from './override.js';
import { readPatch, withPatch } from './rate-patch.js';

/** A record that ends. */
interface Expiry {
  readonly overrides: LimitOverrides;
  readonly kind: OverrideKind;
  readonly key: string;
}

/** The most expiries of records that were replaced. */
const MOST_STALE = 1000;

/** Overrides named limits while the app runs, and applies the overrides that other instances make. */
@Injectable()
export class Overrides {
  /** By the names of limits, those included that only other apps know. */
  private readonly byLimit = new Map<string, LimitOverrides>();
  private readonly expiries = new ExpiryQueue<Expiry>();
  private timeout: LongTimeout | undefined;
  /** What the store's clock is ahead of the monotonic one, in milliseconds. */
  private ahead = 0;
  private opened = false;
  private watching: Promise<void> | undefined;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly compiler: RuleCompiler,
    @Inject(OVERRIDE_STORE) private readonly store: OverrideStore,
  ) {
    store.subscribe(this.apply);
    this.addNamedLimits();
    registry.onDefined = () => this.addNamedLimits();
  }

  /** Resolves when the stored overrides are in force here, or could not be read. */
  async open(): Promise<void> {
    this.opened = true;
    await this.watch();
  }

  close(): void {
    this.opened = false;
    this.store.close();
    this.timeout?.clear();
  }

  async setRate(
    operation: 'set' | 'try',
    name: string,
    patch: unknown,
    options: unknown,
    method: string,
  ): Promise<boolean> {
    const { overrides, limit } = this.of(name, method);
    const { definition, declaration } = limit;
    const location = `LimiterService.${method} of '${name}'`;
    const { key, ends, inherit, ...cause } = readRateOptions(options, location);
    const read = readPatch(definition, patch, location);
    const { quota } = this.compiler.compile(withPatch(definition, read), { ...declaration, location }).limit;
    const previousQuota = overrides.quotaWithout(key);
    const value = JSON.stringify(read);
    const item = { kind: 'rate', limit: name, key, value, inherit, ends, quota, previousQuota } as const;
    return this.store.write({ operation, items: [item], ...cause });
  }

  async clearRate(name: string, options: unknown): Promise<boolean> {
    const { overrides } = this.of(name, 'clearRate');
    const { key, ends, ...cause } = readClearOptions(options, `LimiterService.clearRate of '${name}'`);
    const quota = overrides.quotaWithout(key);
    const address = { kind: 'rate', limit: name, key } as const;
    const item = { ...address, value: 'null', inherit: 'keep', ends, quota, previousQuota: quota } as const;
    return this.store.write({ operation: 'clear', items: [item], ...cause });
  }

  async getRate(name: string, query: unknown): Promise<CurrentRate> {
    const { overrides } = this.of(name, 'getRate');
    const key = readQuery(query, `LimiterService.getRate of '${name}'`);
    await this.readIfPossible();
    return overrides.currentRate(key);
  }

  async listRates(): Promise<CurrentRate[]> {
    await this.readIfPossible();
    return [...this.byLimit.values()].flatMap((each) => (each.limits.length === 1 ? [each.currentRate()] : []));
  }

  async listOverrides(name: string, options: unknown): Promise<OverridePage> {
    const { overrides } = this.of(name, 'listOverrides');
    const { cursor, count } = readPageOptions(options, `LimiterService.listOverrides of '${name}'`);
    await this.readIfPossible();
    return overrides.page(cursor, count);
  }

  /** While the store cannot be read, the last overrides that it told stay in force. */
  private async readIfPossible(): Promise<void> {
    try {
      await this.store.read();
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
    }
  }

  private readonly apply = ({ now, complete, records }: OverrideUpdate): void => {
    this.ahead = now - performance.now();
    const changed = new Set<LimitOverrides>(complete ? this.byLimit.values() : []);
    for (const overrides of changed) overrides.clear();
    if (complete) this.expiries.clear();
    for (const [field, record] of records) {
      const address = addressOf(field);
      if (address === undefined) continue;
      const { kind, limit, key } = address;
      const overrides = this.overridesOf(limit);
      const endsAt = overrides.put(kind, key, record, now);
      if (endsAt !== undefined) this.expiries.add(endsAt, { overrides, kind, key });
      changed.add(overrides);
    }
    this.expire(now, changed);
    for (const overrides of changed) overrides.commit();
    this.setTimeout();
  };

  /** Ends all overrides whose time is over. */
  private expire(now: number, changed: Set<LimitOverrides>): void {
    for (const { overrides, kind, key } of this.expiries.takeExpired(now)) {
      overrides.expire(kind, key, now);
      changed.add(overrides);
    }
  }

  /** Ends the next override in time, by the monotonic clock. */
  private setTimeout(): void {
    this.timeout?.clear();
    if (this.expiries.size > 2 * this.size + MOST_STALE) this.readExpiries();
    const left = this.expiries.next - this.ahead - performance.now();
    this.timeout = new LongTimeout(Math.max(0, Math.ceil(left)), this.endNext, false);
  }

  private readonly endNext = (): void => {
    const changed = new Set<LimitOverrides>();
    this.expire(performance.now() + this.ahead, changed);
    for (const overrides of changed) overrides.commit();
    this.setTimeout();
  };

  private get size(): number {
    return [...this.byLimit.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Records that were replaced have left their times behind. */
  private readExpiries(): void {
    this.expiries.clear();
    for (const overrides of this.byLimit.values()) {
      for (const [at, kind, key] of overrides.expiries()) this.expiries.add(at, { overrides, kind, key });
    }
  }

  /** Adds the named limits that are new: a lazily loaded module defines some. */
  private addNamedLimits(): void {
    const known = new Set([...this.byLimit.values()].flatMap(({ limits }) => limits.map(({ rule }) => rule)));
    for (const limit of this.registry.named) {
      if (known.has(limit.rule)) continue;
      const overrides = this.overridesOf(limit.rule.name);
      overrides.limits.push(limit);
      overrides.commit();
    }
    if (this.opened) void this.watch();
  }

  private overridesOf(name: string): LimitOverrides {
    let overrides = this.byLimit.get(name);
    if (overrides === undefined) this.byLimit.set(name, (overrides = new LimitOverrides(name, this.compiler)));
    return overrides;
  }

  /** Watches the store, which takes a connection, only if some limit has a name. */
  private async watch(): Promise<void> {
    if (this.registry.named.length > 0) await (this.watching ??= this.store.watch());
  }

  /** The overrides of a limit that shares its name with no other. */
  private of(name: string, method: string): { overrides: LimitOverrides; limit: NamedLimit } {
    const location = `LimiterService.${method}`;
    const overrides = this.byLimit.get(name);
    const [limit, ...others] = overrides?.limits ?? [];
    if (overrides === undefined || limit === undefined) {
      const known = [...this.byLimit.values()].filter(({ limits }) => limits.length > 0);
      throw new RateLimitConfigError(
        messages.unnamedLimit(
          location,
          name,
          known.map((each) => each.name),
        ),
      );
    }
    if (others.length === 0) return { overrides, limit };
    const locations = [limit, ...others].map(({ declaration }) => declaration.location);
    throw new RateLimitConfigError(messages.sameName(location, name, locations));
  }
}
