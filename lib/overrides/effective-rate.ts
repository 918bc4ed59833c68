import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages.js';
import type { NamedLimit } from '../rules/limit-registry.js';
import { algorithmOptions, type RuleCompiler } from '../rules/rule-compiler.js';
import { carryOver } from './carry-over.js';
import type { CurrentRate, RateOverride } from './override.js';
import { readPatch, withPatch } from './rate-patch.js';
import { isInForce, type OverrideRecord, readRecord } from './override-record.js';
import { LongTimeout } from '../util/long-timeout.js';

/** The rate of a limit: the recorded override while it is in force, else the configured rate. */
export class EffectiveRate {
  private json: string | undefined;
  private record: OverrideRecord | undefined;
  private override: RateOverride | undefined;
  private timeout: LongTimeout | undefined;

  constructor(
    readonly limit: NamedLimit,
    private readonly compiler: RuleCompiler,
  ) {}

  get current(): CurrentRate {
    const { override } = this;
    const { definition, rule } = this.limit;
    const options = {
      ...algorithmOptions(override === undefined ? definition : withPatch(definition, override.patch)),
    };
    return { name: rule.name, options, override: override && { ...override, patch: { ...override.patch } } };
  }

  /** Applies a record from now on. `now` is its store's time, in milliseconds. */
  apply(json: string | undefined, now: number): void {
    if (json !== this.json) {
      this.json = json;
      this.applyRecord(now);
    } else if (this.override !== undefined && !isInForce(this.record!, now)) {
      this.applyConfigured();
    }
    this.setTimer(now);
  }

  stop(): void {
    this.timeout?.clear();
  }

  private applyRecord(now: number): void {
    const { definition, declaration, rule } = this.limit;
    this.record = undefined;
    try {
      this.record = this.json === undefined ? undefined : readRecord(this.json);
      if (this.record === undefined || !isInForce(this.record, now)) return this.applyConfigured();
      const { version, inherit, expiresAt } = this.record;
      const patch = readPatch(definition, this.record.patch, declaration.location);
      rule.decideBy(
        this.compiler.compile(withPatch(definition, patch), { ...declaration, ...carryOver(this.record) }).limit,
      );
      this.override = { patch, version, inherit, expiresAt: expiresAt ?? undefined };
    } catch (error) {
      // Another release may write records for other configurations.
      logger.warn(messages.rateIgnored(rule.name, error instanceof Error ? error.message : String(error)));
      this.applyConfigured();
    }
  }

  /** Applies the configured rate. Counters from before a reset do not come back. */
  private applyConfigured(): void {
    const { definition, declaration, rule } = this.limit;
    this.override = undefined;
    const generation = this.record?.generation ?? 0;
    rule.decideBy(
      generation === 0
        ? rule.configured
        : this.compiler.compile(definition, { ...declaration, ...carryOver({ generation }) }).limit,
    );
  }

  /** Ends the override in time, by the monotonic clock. */
  private setTimer(now: number): void {
    this.stop();
    const expiresAt = this.override?.expiresAt;
    if (expiresAt !== undefined) this.timeout = new LongTimeout(expiresAt - now, () => this.applyConfigured(), false);
  }
}
