import { messages } from '../errors/messages.js';
import { RATE_STATES, type RatePatch, type RateState } from './override.js';

/** What is kept of a limit's rate. `lua/rates.lua` says what each field means. */
export interface RateRecord {
  readonly patch: RatePatch | null;
  readonly version: number;
  readonly generation: number;
  readonly state: RateState;
  readonly expiresAt: number | null;
  readonly quota: number;
  readonly previousQuota: number;
}

/** Reads a record. Throws for what is none. */
export function readRecord(json: string): RateRecord {
  const record = parse(json);
  const { patch, version, generation, state, expiresAt, quota, previousQuota } = record;
  const numbers = [version, generation, quota, previousQuota, ...(expiresAt === null ? [] : [expiresAt])];
  if (
    typeof patch !== 'object' ||
    Array.isArray(patch) ||
    !RATE_STATES.includes(state as RateState) ||
    !numbers.every((value) => Number.isSafeInteger(value) && (value as number) >= 0)
  ) {
    throw new Error(messages.notARecord(json));
  }
  return record as unknown as RateRecord;
}

/** Whether the record's patch holds at `now`, in milliseconds. */
export function isInForce({ patch, expiresAt }: RateRecord, now: number): boolean {
  return patch !== null && (expiresAt === null || expiresAt > now);
}

function parse(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Says no more than the message below.
  }
  throw new Error(messages.notARecord(json));
}
