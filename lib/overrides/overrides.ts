import { Inject, Injectable } from '@nestjs/common';
import { RATE_BOOK } from '../config/tokens.js';
import { RateLimitConfigError, RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { LimitRegistry } from '../rules/limit-registry.js';
import { RuleCompiler } from '../rules/rule-compiler.js';
import { LiveRate } from './effective-rate.js';
import type { CurrentRate, SetRateOptions } from './override.js';
import type { RateBook, RateChange, RatePage } from './override-store.js';
import { patched, readPatch, readSetRateOptions } from './rate-patch.js';

/** Changes the rates of limits that have a name, and follows the changes that other instances make. */
@Injectable()
export class Rates {
  private readonly lives = new Map<string, LiveRate[]>();
  private page: RatePage | undefined;
  private opened = false;
  private watched: Promise<void> | undefined;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly compiler: RuleCompiler,
    @Inject(RATE_BOOK) private readonly book: RateBook,
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
    this.book.close();
    for (const live of this.all) live.stop();
  }

  async set(
    operation: 'set' | 'try',
    name: string,
    patch: unknown,
    options: SetRateOptions,
    method: string,
  ): Promise<boolean> {
    const { limit } = this.live(name, method);
    const { definition, declaration, rule } = limit;
    const place = `LimiterService.${method} of '${name}'`;
    const { state, lastsMs } = readSetRateOptions(options, place);
    const read = readPatch(definition, patch, place);
    const { quota } = this.compiler.compile(patched(definition, read), { ...declaration, place }).limit;
    const change = { operation, name, patch: JSON.stringify(read), state, lastsMs, quota };
    return this.write({ ...change, configuredQuota: rule.configured.quota });
  }

  async clear(name: string): Promise<boolean> {
    const { quota } = this.live(name, 'clearRate').limit.rule.configured;
    const change = { operation: 'clear', name, patch: 'null', state: 'keep', lastsMs: 0 } as const;
    return this.write({ ...change, quota, configuredQuota: quota });
  }

  async get(name: string): Promise<CurrentRate> {
    const live = this.live(name, 'getRate');
    await this.readIfPossible();
    return live.current;
  }

  async list(): Promise<CurrentRate[]> {
    await this.readIfPossible();
    return this.all.map(({ current }) => current);
  }

  private async write(change: RateChange): Promise<boolean> {
    const { done, page } = await this.book.write(change);
    this.apply(page);
    return done;
  }

  /** While the book cannot be read, what this instance decides by is what it knew last. */
  private async readIfPossible(): Promise<void> {
    try {
      this.apply(await this.book.read());
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
    }
  }

  private readonly apply = (page: RatePage): void => {
    this.page = page;
    for (const live of this.all) live.apply(page.records.get(live.limit.rule.name), page.now);
  };

  /** Takes in the limits that were named since the last time: a module that is loaded lazily brings some. */
  private collect(): void {
    const known = new Set([...this.lives.values()].flat().map(({ limit }) => limit.rule));
    for (const limit of this.registry.named) {
      if (known.has(limit.rule)) continue;
      const { name } = limit.rule;
      this.lives.set(name, [...(this.lives.get(name) ?? []), new LiveRate(limit, this.compiler)]);
    }
    if (this.page !== undefined) this.apply(this.page);
    if (this.opened) void this.watch();
  }

  /** An app without named limits has nothing to follow, and needs no connection for it. */
  private async watch(): Promise<void> {
    if (this.lives.size > 0) await (this.watched ??= this.book.watch(this.apply));
  }

  /** The limits that are alone with their name. */
  private get all(): LiveRate[] {
    return [...this.lives.values()].flatMap((lives) => (lives.length === 1 ? lives : []));
  }

  private live(name: string, method: string): LiveRate {
    const place = `LimiterService.${method}`;
    const [live, ...others] = this.lives.get(name) ?? [];
    if (live === undefined) {
      throw new RateLimitConfigError(messages.unnamedLimit(place, name, [...this.lives.keys()]));
    }
    if (others.length === 0) return live;
    const places = [live, ...others].map(({ limit }) => limit.declaration.place);
    throw new RateLimitConfigError(messages.sameName(place, name, places));
  }
}
