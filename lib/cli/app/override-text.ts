import { entryOf } from '../../app/overrides/lists/listed.js';
import type { OverrideRecord } from '../../app/overrides/override-record.js';
import type { StoredOverride } from './stored-overrides.js';

/** An override as JSON has it. */
export function overrideReport({ kind, limit, key, record }: StoredOverride): object {
  const who = kind === 'list' ? { entry: entryOf(key) } : key === '' ? {} : { key };
  return { kind, ...(limit !== '' && { limit }), ...who, ...recordReport(record) };
}

/** A record without what only the library reads. */
export function recordReport({ patch, mode, list, version, inherit, expiresAt, by, reason }: OverrideRecord): object {
  return {
    ...(patch && { patch, inherit }),
    ...(mode && { mode }),
    ...(list && { list }),
    version,
    ...(expiresAt !== null && { expiresAt }),
    ...(by !== undefined && { by }),
    ...(reason !== undefined && { reason }),
  };
}

/** What a record sets, such as `rate=50 burst=100`, `shadow` or `deny`. */
export function valueText({ patch, mode, list }: OverrideRecord): string {
  if (!patch) return mode ?? list ?? '';
  return Object.entries(patch)
    .map(([option, value]) => `${option}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}

/** Who a list names, as it is written on the command line. */
export function entryText(key: string): string {
  const { ip, identity, pattern } = entryOf(key);
  return ip ?? identity ?? pattern!;
}
