import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { causeOf } from './change-cause.js';
import { modeOverride, rateOverride } from './key-override.js';
import { listedBy, listedEntry, entryOf } from './lists/listed.js';
import { fieldOf, type OverrideAddress, VALUE_FIELDS } from './override-address.js';
import { asRecord, isDamaged, isInForce, type OverrideRecord } from './override-record.js';
import { type ChangedOverride, type OverrideItem, type StoredChange, WITHOUT_QUOTA } from './override-store.js';
import type { ChangedList } from './lists/list.js';
import type { ChangedMode, ChangedRate, RecordedChange } from './override.js';
import { isKnownKind } from './overrides-reply.js';

/** The public form of a change. */
export function recordedChange({ version, at, rollbackTo, changes, ...cause }: StoredChange): RecordedChange {
  const now = Math.floor(at / 1000);
  return {
    version,
    at: now,
    ...causeOf(cause),
    ...(rollbackTo === undefined ? {} : { rollbackTo }),
    overrides: changes.filter(isKnownKind).map((changed) => changedOverride(changed, now)),
  };
}

/** The items that restore the state before all changes after `version`. Throws for a version that the history no longer covers. */
export function undone(history: readonly StoredChange[], version: number, location: string): OverrideItem[] {
  const [oldest, last] = [history[0]?.version ?? 1, history.at(-1)?.version ?? 0];
  if (!Number.isSafeInteger(version) || version < oldest - 1 || version > last) {
    throw new RateLimitConfigError(messages.wrongVersion(location, version, oldest - 1, last));
  }
  return itemsBefore(
    history.filter((change) => change.version > version),
    location,
  );
}

/** The items that restore the state before all of these changes. */
export function itemsBefore(changes: readonly StoredChange[], location: string): OverrideItem[] {
  const items = new Map<string, OverrideItem>();
  for (const change of changes) {
    for (const changed of change.changes) {
      if (!isKnownKind(changed)) throw new RateLimitConfigError(messages.unknownChange(location, change.version));
      // The state before the oldest change is the one to restore.
      if (!items.has(fieldOf(changed))) items.set(fieldOf(changed), itemBefore(changed));
    }
  }
  return [...items.values()];
}

/** The last change after a version that affects one of the same overrides. */
export function laterChange(
  history: readonly StoredChange[],
  version: number,
  things: readonly OverrideAddress[],
): StoredChange | undefined {
  const fields = new Set(things.map(fieldOf));
  return history.findLast((each) => each.version > version && each.changes.some((other) => fields.has(fieldOf(other))));
}

function itemBefore({ kind, limit, key, before }: ChangedOverride): OverrideItem {
  const address = { kind, limit, key };
  const record = recordOf(before);
  if (record === undefined) return { ...address, ...WITHOUT_QUOTA, value: 'null', ends: 'null' };
  const { inherit, expiresAt, quota, previousQuota } = record;
  const value = JSON.stringify(record[VALUE_FIELDS[kind]] ?? null);
  return { ...address, value, inherit, ends: String(expiresAt), quota, previousQuota };
}

function changedOverride(
  { kind, limit, key, before, after }: ChangedOverride,
  now: number,
): ChangedRate | ChangedMode | ChangedList {
  const [old, current] = [before, after].map((stored) => {
    const record = recordOf(stored);
    return record !== undefined && isInForce(record, now) ? record : undefined;
  });
  if (kind === 'list') {
    const [from, to] = [old, current].map((record) => {
      const listed = record && listedBy(key, record);
      return listed && listedEntry(limit, listed);
    });
    return { kind, ...(limit === '' ? {} : { limit }), entry: entryOf(key), before: from, after: to };
  }
  const of = { limit, ...(key === '' ? {} : { key }) };
  return kind === 'rate'
    ? { kind, ...of, before: old && rateOverride(key, old), after: current && rateOverride(key, current) }
    : { kind, ...of, before: old && modeOverride(key, old), after: current && modeOverride(key, current) };
}

function recordOf(stored: unknown): OverrideRecord | undefined {
  const record = asRecord(stored);
  return isDamaged(record) ? undefined : record;
}
