import { addressOf, fieldOf, type OverrideAddress } from '../../app/overrides/override-address.js';
import { isDamaged, isInForce, type OverrideRecord, readRecord } from '../../app/overrides/override-record.js';
import { type ConsoleRedis, timeOf } from '../../console/telemetry/console-redis.js';
import { pairsOf } from '../../storage/redis/errors.js';
import { overrideKeys } from '../../storage/stores/redis/keys.js';
import { entryOf } from '../../app/overrides/lists/listed.js';

/** An override as JSON. */
export function overrideReport({ kind, limit, key, record }: StoredOverride): object {
  const who = kind === 'list' ? { entry: entryOf(key) } : key === '' ? {} : { key };
  return { kind, ...(limit !== '' && { limit }), ...who, ...recordReport(record) };
}

/** A record without the fields that are internal to the library. */
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

/** The values of a record, such as `rate=50 burst=100`, `shadow` or `deny`. */
export function valueText({ patch, mode, list }: OverrideRecord): string {
  if (!patch) return mode ?? list ?? '';
  return Object.entries(patch)
    .map(([option, value]) => `${option}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}

/** The key of a list entry, in the notation of the command line. */
export function entryText(key: string): string {
  const { ip, identity, pattern } = entryOf(key);
  return ip ?? identity ?? pattern!;
}

/** An override on Redis, of any app with this prefix. */
export interface StoredOverride extends OverrideAddress {
  readonly record: OverrideRecord;
}

const STEP = 1000;

/** The overrides that are in effect, in the order of limits and keys. */
export async function storedOverrides(redis: ConsoleRedis): Promise<StoredOverride[]> {
  const [rates = '', others = ''] = overrideKeys(redis.prefix, redis.client.options.keyPrefix);
  const [time, hash] = await redis.run([['time'], ['hgetall', rates]]);
  const now = timeOf(time);
  const found: StoredOverride[] = [];
  const add = (address: OverrideAddress | undefined, json: string) => {
    if (address === undefined) return;
    const record = readRecord(json);
    if (!isDamaged(record) && isInForce(record, now)) found.push({ ...address, record });
  };
  for (const [limit, json] of pairsOf(hash)) add({ kind: 'rate', limit, key: '' }, json);
  let cursor = '0';
  do {
    const [page] = await redis.run([['hscan', others, cursor, 'count', STEP]]);
    const [next, flat] = page as [string, string[]];
    for (const [field, json] of pairsOf(flat)) add(addressOf(field), json);
    cursor = next;
  } while (cursor !== '0');
  const order = (each: StoredOverride) => fieldOf({ ...each, kind: 'rate' });
  return found.toSorted((one, other) => (order(one) < order(other) ? -1 : 1));
}

/** The record that is in effect at an address, if there is one. */
export async function storedOverride(
  redis: ConsoleRedis,
  address: OverrideAddress,
): Promise<OverrideRecord | undefined> {
  const [rates = '', others = ''] = overrideKeys(redis.prefix, redis.client.options.keyPrefix);
  const isOfAll = address.kind === 'rate' && address.key === '';
  const [time, json] = await redis.run([
    ['time'],
    isOfAll ? ['hget', rates, address.limit] : ['hget', others, fieldOf(address)],
  ]);
  if (typeof json !== 'string') return undefined;
  const record = readRecord(json);
  return isDamaged(record) || !isInForce(record, timeOf(time)) ? undefined : record;
}
