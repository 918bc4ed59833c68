import { ExpiryQueue } from '../../engine/util/heap.js';
import { fieldOf, VALUE_FIELDS } from './override-address.js';
import { isInForce, type OverrideRecord } from './override-record.js';
import {
  type ChangedOverride,
  MAX_CHANGES,
  type OverrideChange,
  type OverrideItem,
  type OverrideStore,
  type OverrideUpdate,
  type StoredChange,
} from './override-store.js';

/** Stores overrides in this process, in the same way as `lua/overrides.lua` does on Redis. */
export class MemoryOverrideStore implements OverrideStore {
  private readonly records = new Map<string, OverrideRecord>();
  private readonly history: StoredChange[] = [];
  /** The fields of records that expire. */
  private readonly expiries = new ExpiryQueue<string>();
  private version = 0;
  private onUpdate: (update: OverrideUpdate) => void = () => undefined;

  subscribe(onUpdate: (update: OverrideUpdate) => void): void {
    this.onUpdate = onUpdate;
  }

  /** Only this process changes the store. */
  async watch(): Promise<void> {}

  async read(): Promise<void> {}

  async write({ operation, items, by, reason, lastVersion, rollbackTo }: OverrideChange): Promise<number | undefined> {
    const now = Date.now();
    if (lastVersion !== undefined && lastVersion !== this.version) return undefined;
    const changed = items.flatMap((item) => this.change(operation, item, now, { by, reason }) ?? []);
    if (changed.length === 0) return undefined;
    this.removeExpired(now);
    const previousAt = this.history.at(-1)?.at ?? 0;
    const head = { version: ++this.version, at: now * 1000, previousAt, by, reason, rollbackTo };
    this.history.push(JSON.parse(JSON.stringify({ ...head, changes: changed })) as StoredChange);
    if (this.history.length > MAX_CHANGES) this.history.shift();
    const records = new Map(
      changed.map((each) => [fieldOf(each), (each.after ?? undefined) as OverrideRecord | undefined]),
    );
    this.onUpdate({ now, complete: false, records });
    return head.version;
  }

  async changes(most: number): Promise<StoredChange[]> {
    return structuredClone(this.history.slice(-most));
  }

  close(): void {}

  private change(
    operation: OverrideChange['operation'],
    { kind, limit, key, value, inherit, ends, quota, previousQuota }: OverrideItem,
    now: number,
    cause: Pick<OverrideRecord, 'by' | 'reason'>,
  ): ChangedOverride | undefined {
    const address = { kind, limit, key };
    const old = this.records.get(fieldOf(address));
    const inForce = old !== undefined && isInForce(old, now);
    const changes = operation === 'set' || operation === 'restore' || inForce === (operation === 'clear');
    if (!changes) return undefined;
    const isReset = inherit === 'reset' && operation !== 'restore';
    const after: OverrideRecord = {
      [VALUE_FIELDS[kind]]: JSON.parse(value) as never,
      version: Math.max(this.version, old?.version ?? 0) + 1,
      generation: (old?.generation ?? 0) + (isReset ? 1 : 0),
      inherit,
      expiresAt: ends === 'null' ? null : ends.startsWith('+') ? now + Number(ends.slice(1)) : Number(ends),
      quota,
      previousQuota: inForce && operation !== 'restore' ? old.quota : previousQuota,
      ...cause,
    };
    const isOfAll = kind === 'rate' && key === '';
    const isKept = isOfAll || value !== 'null' || after.generation > 0;
    if (!isKept) this.records.delete(fieldOf(address));
    else this.records.set(fieldOf(address), after);
    if (isKept && !isOfAll && after.expiresAt !== null) this.expiries.add(after.expiresAt, fieldOf(address));
    return { ...address, before: old ?? null, after: isKept ? after : null };
  }

  private removeExpired(now: number): void {
    this.expiries.dropStale(this.records.size, () => this.ends());
    for (const field of this.expiries.takeExpired(now)) {
      const record = this.records.get(field);
      if (record?.generation === 0 && !isInForce(record, now)) this.records.delete(field);
    }
  }

  private *ends(): Iterable<[at: number, field: string]> {
    for (const [field, { expiresAt }] of this.records) if (expiresAt !== null) yield [expiresAt, field];
  }
}
