import { isInForce, type RateRecord, readRecord } from './override-record.js';
import type { RateAnswer, RateBook, RateChange, RatePage } from './override-store.js';
import type { RatePatch } from './override.js';

/** Keeps changed rates in this process, as `lua/rates.lua` does on Redis. */
export class MemoryRateBook implements RateBook {
  private readonly records = new Map<string, string>();

  /** Nobody else changes this book. */
  async watch(): Promise<void> {}

  async read(): Promise<RatePage> {
    return { now: Date.now(), records: this.records };
  }

  async write({ operation, name, patch, state, lastsMs, quota, configuredQuota }: RateChange): Promise<RateAnswer> {
    const page = await this.read();
    const json = this.records.get(name);
    const old = json === undefined ? undefined : readRecord(json);
    const inForce = old !== undefined && isInForce(old, page.now);
    const done = operation === 'set' || inForce === (operation === 'clear');
    if (done) {
      const record: RateRecord = {
        patch: JSON.parse(patch) as RatePatch | null,
        version: (old?.version ?? 0) + 1,
        generation: (old?.generation ?? 0) + (state === 'reset' ? 1 : 0),
        state,
        expiresAt: lastsMs === 0 ? null : page.now + lastsMs,
        quota,
        previousQuota: inForce ? old.quota : configuredQuota,
      };
      this.records.set(name, JSON.stringify(record));
    }
    return { done, page };
  }

  close(): void {}
}
