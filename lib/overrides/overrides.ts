import { Inject, Injectable } from '@nestjs/common';
import { OVERRIDE_STORE } from '../config/tokens.js';
import { RateLimitConfigError, RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { LimitRegistry } from '../rules/limit-registry.js';
import { RuleCompiler } from '../rules/rule-compiler.js';
import { EffectiveRate } from './effective-rate.js';
import type { CurrentRate, SetRateOptions } from './override.js';
import type { OverrideStore, OverrideChange, OverrideSnapshot } from './override-store.js';
import { patched, readPatch, readSetRateOptions } from './rate-patch.js';

/** Changes the rates of limits that have a name, and follows the changes that other instances make. */
@Injectable()
export class Overrides {
  private readonly rates = new Map<string, EffectiveRate[]>();
  private snapshot: OverrideSnapshot | undefined;
  private opened = false;
  private watched: Promise<void> | undefined;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly compiler: RuleCompiler,
    @Inject(OVERRIDE_STORE) private readonly store: OverrideStore,
  ) {
    this.collect();
    registry.onDefined = () => this.collect();
  }

  /** Resolves when what was changed before holds here, or could not be read. */
  async open(): Promise<void> {
    this.opened = true;
    await this.watch();
  }

  close(): void {
    this.opened = false;
    this.store.close();
    for (const live of this.all) live.stop();
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
    const { quota } = this.compiler.compile(patched(definition, read), { ...declaration, location }).limit;
    const change = { operation, name, patch: JSON.stringify(read), inherit, lastsMs, quota };
    return this.write({ ...change, configuredQuota: rule.configured.quota });
  }

  async clear(name: string): Promise<boolean> {
    const { quota } = this.rateOf(name, 'clearRate').limit.rule.configured;
    const change = { operation: 'clear', name, patch: 'null', inherit: 'keep', lastsMs: 0 } as const;
    return this.write({ ...change, quota, configuredQuota: quota });
  }

  async get(name: string): Promise<CurrentRate> {
    const live = this.rateOf(name, 'getRate');
    await this.readIfPossible();
    return live.current;
  }

  async list(): Promise<CurrentRate[]> {
    await this.readIfPossible();
    return this.all.map(({ current }) => current);
  }

  private async write(change: OverrideChange): Promise<boolean> {
    const { done, snapshot } = await this.store.write(change);
    this.apply(snapshot);
    return done;
  }

  /** While the book cannot be read, what this instance decides by is what it knew last. */
  private async readIfPossible(): Promise<void> {
    try {
      this.apply(await this.store.read());
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
    }
  }

  private readonly apply = (page: OverrideSnapshot): void => {
    this.snapshot = page;
    for (const live of this.all) live.apply(page.records.get(live.limit.rule.name), page.now);
  };

  /** Takes in the limits that were named since the last time: a module that is loaded lazily brings some. */
  private collect(): void {
    const known = new Set([...this.rates.values()].flat().map(({ limit }) => limit.rule));
    for (const limit of this.registry.named) {
      if (known.has(limit.rule)) continue;
      const { name } = limit.rule;
      this.rates.set(name, [...(this.rates.get(name) ?? []), new EffectiveRate(limit, this.compiler)]);
    }
    if (this.snapshot !== undefined) this.apply(this.snapshot);
    if (this.opened) void this.watch();
  }

  /** An app without named limits has nothing to follow, and needs no connection for it. */
  private async watch(): Promise<void> {
    if (this.rates.size > 0) await (this.watched ??= this.store.watch(this.apply));
  }

  /** The limits that are alone with their name. */
  private get all(): EffectiveRate[] {
    return [...this.rates.values()].flatMap((lives) => (lives.length === 1 ? lives : []));
  }

  private rateOf(name: string, method: string): EffectiveRate {
    const location = `LimiterService.${method}`;
    const [live, ...others] = this.rates.get(name) ?? [];
    if (live === undefined) {
      throw new RateLimitConfigError(messages.unnamedLimit(location, name, [...this.rates.keys()]));
    }
    if (others.length === 0) return live;
    const locations = [live, ...others].map(({ limit }) => limit.declaration.location);
    throw new RateLimitConfigError(messages.sameName(location, name, locations));
  }
}
