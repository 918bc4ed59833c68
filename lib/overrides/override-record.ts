import { messages } from '../errors/messages.js';
import { INHERIT_MODES, type InheritMode, type LimitMode, LIMIT_MODES, type RatePatch } from './override.js';

/** The stored form of an override. `lua/overrides.lua` explains each field. */
export interface OverrideRecord {
  /** Of a rate. */
  readonly patch?: RatePatch | null;
  /** Of a mode. */
  readonly mode?: LimitMode | null;
  readonly version: number;
  readonly generation: number;
  readonly inherit: InheritMode;
  readonly expiresAt: number | null;
  readonly quota: number;
  readonly previousQuota: number;
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
}

/** A stored record that cannot be read. */
export interface DamagedRecord {
  readonly damage: string;
}

export type StoredRecord = OverrideRecord | DamagedRecord;

/** Reads a stored record. */
export function readRecord(json: string): StoredRecord {
  try {
    return asRecord(JSON.parse(json), () => json);
  } catch {
    return { damage: messages.notARecord(json) };
  }
}

/** Reads a record of what was parsed with others. */
export function asRecord(value: unknown, json = () => JSON.stringify(value)): StoredRecord {
  if (typeof value !== 'object' || value === null) return { damage: messages.notARecord(json()) };
  const record = value as Record<string, unknown>;
  // Instances of an earlier release, which may share the hash, call the mode `state`.
  const { patch, mode, version, generation, inherit = record['state'], expiresAt, quota, previousQuota } = record;
  const { by, reason } = record;
  const numbers = [version, generation, quota, previousQuota, ...(expiresAt === null ? [] : [expiresAt])];
  const isRecord =
    isValue(patch, mode) &&
    INHERIT_MODES.includes(inherit as InheritMode) &&
    numbers.every((value) => Number.isSafeInteger(value) && (value as number) >= 0) &&
    [by, reason].every((text) => text === undefined || typeof text === 'string');
  if (!isRecord) return { damage: messages.notARecord(json()) };
  return { patch, mode, version, generation, inherit, expiresAt, quota, previousQuota, by, reason } as OverrideRecord;
}

export function isDamaged(record: StoredRecord): record is DamagedRecord {
  return 'damage' in record;
}

/** Whether the record says something, at `now`, in milliseconds. */
export function isInForce({ patch, mode, expiresAt }: OverrideRecord, now: number): boolean {
  return (patch ?? mode ?? null) !== null && (expiresAt === null || expiresAt > now);
}

/** The same record without what it said: only its generation counts any more. */
export function ended(record: OverrideRecord): OverrideRecord {
  return { ...record, patch: null, mode: null };
}

/** A patch, or a mode. */
function isValue(patch: unknown, mode: unknown): boolean {
  if (mode !== undefined) return patch === undefined && (mode === null || LIMIT_MODES.includes(mode as LimitMode));
  return typeof patch === 'object' && !Array.isArray(patch);
}
