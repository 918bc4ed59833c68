import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages.js';
import type { NamedLimit } from '../rules/limit-registry.js';
import { algorithmOptions, type RuleCompiler } from '../rules/rule-compiler.js';
import { carryOver } from './carry-over.js';
import type { CurrentRate, RateOverride } from './override.js';
import { LongTimeout } from '../util/long-timeout.js';
import { patched, readPatch } from './rate-patch.js';
import { isInForce, type OverrideRecord, readRecord } from './override-record.js';

/** A limit whose rate may change: makes its rule decide by what is recorded, and by the configuration once that ends. */
export class EffectiveRate {
  private json: string | undefined;
  private record: OverrideRecord | undefined;
  private override: RateOverride | undefined;
  private timer: LongTimeout | undefined;

  constructor(
    readonly limit: NamedLimit,
    private readonly compiler: RuleCompiler,
  ) {}

  get current(): CurrentRate {
    const { override } = this;
    const { definition, rule } = this.limit;
    const options = { ...algorithmOptions(override === undefined ? definition : patched(definition, override.patch)) };
    return { name: rule.name, options, override: override && { ...override, patch: { ...override.patch } } };
  }

  /** Decides by a record from now on. `now` is its book's time, in milliseconds. */
  apply(json: string | undefined, now: number): void {
    if (json !== this.json) {
      this.json = json;
      this.change(now);
    } else if (this.override !== undefined && !isInForce(this.record!, now)) {
      this.configure();
    }
    this.setTimer(now);
  }

  stop(): void {
    this.timer?.clear();
  }

  private change(now: number): void {
    const { definition, declaration, rule } = this.limit;
    this.record = undefined;
    try {
      this.record = this.json === undefined ? undefined : readRecord(this.json);
      if (this.record === undefined || !isInForce(this.record, now)) return this.configure();
      const { version, inherit, expiresAt } = this.record;
      const patch = readPatch(definition, this.record.patch, declaration.location);
      rule.decideBy(
        this.compiler.compile(patched(definition, patch), { ...declaration, ...carryOver(this.record) }).limit,
      );
      this.override = { patch, version, inherit, expiresAt: expiresAt ?? undefined };
    } catch (error) {
      // Another release wrote it, for limits that are configured otherwise.
      logger.warn(messages.rateIgnored(rule.name, error instanceof Error ? error.message : String(error)));
      this.configure();
    }
  }

  /** Back to the configured rate. Counters that were left behind by a reset do not come back. */
  private configure(): void {
    const { definition, declaration, rule } = this.limit;
    this.override = undefined;
    const generation = this.record?.generation ?? 0;
    rule.decideBy(
      generation === 0
        ? rule.configured
        : this.compiler.compile(definition, { ...declaration, ...carryOver({ generation }) }).limit,
    );
  }

  /** Ends the override by itself, on a clock that nobody sets. */
  private setTimer(now: number): void {
    this.timer?.clear();
    const expiresAt = this.override?.expiresAt;
    if (expiresAt === undefined) return;
    const end = performance.now() + expiresAt - now;
    const wait = (): void => {
      const left = end - performance.now();
      if (left <= 0) return this.configure();
      this.timer = new LongTimeout(Math.ceil(left), wait, false);
    };
    wait();
  }
}
