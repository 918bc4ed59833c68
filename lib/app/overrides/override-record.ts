import { algorithms } from '../../engine/algorithms/index.js';
import { messages } from '../../engine/errors/messages/general.js';
import { LIMIT_MODES, type LimitMode } from '../../engine/limits/limit-settings.js';
import { time } from '../../engine/options/kinds.js';
import { isInMonths } from '../../engine/options/values.js';
import { type ListName, LISTS } from '../config/list-entry.js';
import type { OverrideKind } from './override-address.js';
import { INHERIT_MODES, type InheritMode, type RatePatch } from './override.js';

/** The stored form of an override. `lua/overrides.lua` documents each field. */
export interface OverrideRecord {
  /** For a rate. */
  readonly patch?: RatePatch | null | undefined;
  /** For a mode. */
  readonly mode?: LimitMode | null | undefined;
  /** For a list entry. */
  readonly list?: ListName | null | undefined;
  readonly version: number;
  readonly generation: number;
  readonly inherit: InheritMode;
  readonly expiresAt: number | null;
  readonly quota: number;
  readonly previousQuota: number;
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
}

interface DamagedRecord {
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

/** Reads a record from an already parsed value. */
export function asRecord(value: unknown, json = () => JSON.stringify(value)): StoredRecord {
  if (typeof value !== 'object' || value === null) return { damage: messages.notARecord(json()) };
  const record = value as Record<string, unknown>;
  // Instances of an earlier release, which may use the same hash, write the mode as `state`.
  const { patch, mode, list, version, generation, inherit = record['state'], expiresAt, quota, previousQuota } = record;
  const { by, reason } = record;
  const numbers = [version, generation, quota, previousQuota, ...(expiresAt === null ? [] : [expiresAt])];
  const isRecord =
    isValue(patch, mode, list) &&
    INHERIT_MODES.includes(inherit as InheritMode) &&
    numbers.every((value) => Number.isSafeInteger(value) && (value as number) >= 0) &&
    [by, reason].every((text) => text === undefined || typeof text === 'string');
  if (!isRecord) return { damage: messages.notARecord(json()) };
  return {
    patch: withUnits(patch as RatePatch | null | undefined),
    mode,
    list,
    version,
    generation,
    inherit,
    expiresAt,
    quota,
    previousQuota,
    by,
    reason,
  } as OverrideRecord;
}

export function isDamaged(record: StoredRecord): record is DamagedRecord {
  return 'damage' in record;
}

/** Returns true if the record has a value at `now`, in milliseconds. */
export function isInForce({ patch, mode, list, expiresAt }: OverrideRecord, now: number): boolean {
  return (patch ?? mode ?? list ?? null) !== null && (expiresAt === null || expiresAt > now);
}

/** A copy of the record without its value. Only its generation still matters. */
export function ended(record: OverrideRecord): OverrideRecord {
  const { version, generation, inherit, expiresAt, quota, previousQuota, by, reason } = record;
  const others = { version, generation, inherit, expiresAt, quota, previousQuota, by, reason };
  return { patch: null, mode: null, list: null, ...others };
}

/** A patch, a mode, or the name of a list. */
function isValue(patch: unknown, mode: unknown, list: unknown): boolean {
  if (list !== undefined) {
    return patch === undefined && mode === undefined && (list === null || LISTS.includes(list as ListName));
  }
  if (mode !== undefined) return patch === undefined && (mode === null || LIMIT_MODES.includes(mode as LimitMode));
  return typeof patch === 'object' && !Array.isArray(patch);
}

/** Durations without a unit, which an earlier release wrote for milliseconds. */
const WITHOUT_UNIT = /^-?(?:\d+)?\.?\d+ *$/;

/** A patch of the previous release, which read durations without a unit as milliseconds, and `M` as minutes. */
function withUnits(patch: RatePatch | null | undefined): RatePatch | null | undefined {
  if (patch === null || patch === undefined) return patch;
  const outdated = Object.entries(patch).filter(
    (entry): entry is [string, string] =>
      isTime(entry[0]) && typeof entry[1] === 'string' && (WITHOUT_UNIT.test(entry[1]) || isInMonths(entry[1])),
  );
  if (outdated.length === 0) return patch;
  return {
    ...patch,
    ...Object.fromEntries(
      outdated.map(([option, text]) => [option, isInMonths(text) ? text.toLowerCase() : Number(text)]),
    ),
  };
}

function isTime(option: string): boolean {
  return Object.hasOwn(algorithms.options, option) && algorithms.options[option]!.kind.read === time.read;
}

/** Stores and applies the records of one limit, or of all limits. */
export interface OverrideHolder<Kind extends OverrideKind = OverrideKind> {
  /** The number of keys that have records. */
  readonly size: number;
  /** Takes a record. Returns the time at which it expires. */
  put(kind: Kind, key: string, stored: StoredRecord | undefined, now: number): number | undefined;
  /** Ends the record of a key if it has expired. */
  expire(kind: Kind, key: string, now: number): void;
  /** Drops all records. */
  clear(): void;
  /** Applies the records. */
  commit(): void;
  /** The times at which records expire. */
  expiries(): Iterable<[at: number, kind: Kind, key: string]>;
}
