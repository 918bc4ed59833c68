import { Inject, Injectable } from '@nestjs/common';
import { OVERRIDE_STORE } from '../config/tokens.js';
import { RateLimitConfigError, RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { LimitRegistry } from '../rules/limit-registry.js';
import { RuleCompiler } from '../rules/rule-compiler.js';
import { EffectiveRate } from './effective-rate.js';
import type { CurrentRate, SetRateOptions } from './override.js';
import type { OverrideStore, OverrideChange, OverrideSnapshot } from './override-store.js';
import { readPatch, readSetRateOptions, withPatch } from './rate-patch.js';

/** Overrides the rates of named limits, and applies the overrides that other instances make. */
@Injectable()
export class Overrides {
  private readonly effectiveRates = new Map<string, EffectiveRate[]>();
  private snapshot: OverrideSnapshot | undefined;
  private opened = false;
  private watching: Promise<void> | undefined;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly compiler: RuleCompiler,
    @Inject(OVERRIDE_STORE) private readonly store: OverrideStore,
  ) {
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
    for (const rate of this.unambiguous) rate.stop();
  }

  async set(
    operation: 'set' | 'try',
    name: string,
    patch: unknown,
    options: SetRateOptions,
    method: string,
  ): Promise<boolean> {
    const { limit } = this.rateOf(name, method);
    const { definition, declaration, rule } = limit;
    const location = `LimiterService.${method} of '${name}'`;
    const { inherit, lastsMs } = readSetRateOptions(options, location);
    const read = readPatch(definition, patch, location);
    const { quota } = this.compiler.compile(withPatch(definition, read), { ...declaration, location }).limit;
    const change = { operation, name, patch: JSON.stringify(read), inherit, lastsMs, quota };
    return this.write({ ...change, configuredQuota: rule.configured.quota });
  }

  async clear(name: string): Promise<boolean> {
    const { quota } = this.rateOf(name, 'clearRate').limit.rule.configured;
    const change = { operation: 'clear', name, patch: 'null', inherit: 'keep', lastsMs: 0 } as const;
    return this.write({ ...change, quota, configuredQuota: quota });
  }

  async get(name: string): Promise<CurrentRate> {
    const rate = this.rateOf(name, 'getRate');
    await this.readIfPossible();
    return rate.current;
  }

  async list(): Promise<CurrentRate[]> {
    await this.readIfPossible();
    return this.unambiguous.map(({ current }) => current);
  }

  private async write(change: OverrideChange): Promise<boolean> {
    const { done, snapshot } = await this.store.write(change);
    this.apply(snapshot);
    return done;
  }

  /** While the store cannot be read, the last overrides that it told stay in force. */
  private async readIfPossible(): Promise<void> {
    try {
      this.apply(await this.store.read());
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
    }
  }

  private readonly apply = (snapshot: OverrideSnapshot): void => {
    this.snapshot = snapshot;
    const { records, now } = snapshot;
    for (const rate of this.unambiguous) rate.apply(records.get(rate.limit.rule.name), now);
  };

  /** Adds the named limits that are new: a lazily loaded module defines some. */
  private addNamedLimits(): void {
    const known = new Set([...this.effectiveRates.values()].flat().map(({ limit }) => limit.rule));
    for (const limit of this.registry.named) {
      if (known.has(limit.rule)) continue;
      const { name } = limit.rule;
      this.effectiveRates.set(name, [
        ...(this.effectiveRates.get(name) ?? []),
        new EffectiveRate(limit, this.compiler),
      ]);
    }
    if (this.snapshot !== undefined) this.apply(this.snapshot);
    if (this.opened) void this.watch();
  }

  /** Watches the store, which takes a connection, only if some limit has a name. */
  private async watch(): Promise<void> {
    if (this.effectiveRates.size > 0) await (this.watching ??= this.store.watch(this.apply));
  }

  /** The rates of limits that share their name with no other. */
  private get unambiguous(): EffectiveRate[] {
    return [...this.effectiveRates.values()].flatMap((rates) => (rates.length === 1 ? rates : []));
  }

  private rateOf(name: string, method: string): EffectiveRate {
    const location = `LimiterService.${method}`;
    const [rate, ...others] = this.effectiveRates.get(name) ?? [];
    if (rate === undefined) {
      throw new RateLimitConfigError(messages.unnamedLimit(location, name, [...this.effectiveRates.keys()]));
    }
    if (others.length === 0) return rate;
    const locations = [rate, ...others].map(({ limit }) => limit.declaration.location);
    throw new RateLimitConfigError(messages.sameName(location, name, locations));
  }
}
