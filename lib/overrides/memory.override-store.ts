import { isInForce, type OverrideRecord, readRecord } from './override-record.js';
import type { OverrideAnswer, OverrideStore, OverrideChange, OverrideSnapshot } from './override-store.js';
import type { RatePatch } from './override.js';

/** Keeps overrides in this process, as `lua/overrides.lua` does on Redis. */
export class MemoryOverrideStore implements OverrideStore {
  private readonly records = new Map<string, string>();

  /** Only this process changes the store, and applies its changes itself. */
  async watch(): Promise<void> {}

  async read(): Promise<OverrideSnapshot> {
    return { now: Date.now(), records: this.records };
  }

  async write({
    operation,
    name,
    patch,
    inherit,
    lastsMs,
    quota,
    configuredQuota,
  }: OverrideChange): Promise<OverrideAnswer> {
    const snapshot = await this.read();
    const json = this.records.get(name);
    const old = json === undefined ? undefined : readRecord(json);
    const inForce = old !== undefined && isInForce(old, snapshot.now);
    const done = operation === 'set' || inForce === (operation === 'clear');
    if (done) {
      const record: OverrideRecord = {
        patch: JSON.parse(patch) as RatePatch | null,
        version: (old?.version ?? 0) + 1,
        generation: (old?.generation ?? 0) + (inherit === 'reset' ? 1 : 0),
        inherit,
        expiresAt: lastsMs === 0 ? null : snapshot.now + lastsMs,
        quota,
        previousQuota: inForce ? old.quota : configuredQuota,
      };
      this.records.set(name, JSON.stringify(record));
    }
    return { done, snapshot };
  }

  close(): void {}
}
