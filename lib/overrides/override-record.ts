import { messages } from '../errors/messages.js';
import { INHERIT_MODES, type RatePatch, type InheritMode } from './override.js';

/** The stored form of an override. `lua/overrides.lua` explains each field. */
export interface OverrideRecord {
  readonly patch: RatePatch | null;
  readonly version: number;
  readonly generation: number;
  readonly inherit: InheritMode;
  readonly expiresAt: number | null;
  readonly quota: number;
  readonly previousQuota: number;
}

/** Reads a record. Throws if it is none. */
export function readRecord(json: string): OverrideRecord {
  const record = parse(json);
  // Instances of an earlier release, which may share the hash, call the mode `state`.
  const { patch, version, generation, inherit = record['state'], expiresAt, quota, previousQuota } = record;
  const numbers = [version, generation, quota, previousQuota, ...(expiresAt === null ? [] : [expiresAt])];
  if (
    typeof patch !== 'object' ||
    Array.isArray(patch) ||
    !INHERIT_MODES.includes(inherit as InheritMode) ||
    !numbers.every((value) => Number.isSafeInteger(value) && (value as number) >= 0)
  ) {
    throw new Error(messages.notARecord(json));
  }
  return { ...record, inherit } as unknown as OverrideRecord;
}

/** Whether the record's patch holds at `now`, in milliseconds. */
export function isInForce({ patch, expiresAt }: OverrideRecord, now: number): boolean {
  return patch !== null && (expiresAt === null || expiresAt > now);
}

function parse(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // The error below says it all.
  }
  throw new Error(messages.notARecord(json));
}
