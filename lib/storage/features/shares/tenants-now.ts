import type { Counter } from '../../../engine/limits/counter.js';
import { Script } from '../../redis/script.js';
import { type FeatureReading, read, type ReadableStore, type RedisParts } from '../../stores/feature-reading.js';
import { keyOf } from '../../stores/redis/keys.js';
import type { TenantNow, TenantsNow } from '../tenants.js';
import type { ShareParameters } from './fair-share.js';
import { partOf } from './share-leaders.js';
import { ACTIVE_SLICES, later, SHARE_SLICES, sum } from './tenant-record.js';
import { TENANTS_SCRIPT } from './tenants-script.generated.js';

const MOST = 8;
const AGES = SHARE_SLICES + 1;
const TIMEOUT_MS = 2000;

/** A tenant in the script's reply: its expected use in total, then the units that it used in each slice. */
type Stored = readonly [id: string, asked: number, weight: number, expected: number, ...used: number[]];

const scripts = new WeakMap<object, Script>();

/** Reads the tenants of a counter; `undefined` without recent requests, or if the store can't list them. Only Redis can. */
export function tenantsNow(store: ReadableStore, counter: Counter): Promise<TenantsNow | undefined> {
  const reading: FeatureReading<Promise<TenantsNow | undefined>> = {
    name: 'tenants',
    counter,
    inMemory: () => Promise.resolve(undefined),
    onRedis: (parts) => readFrom(parts, counter),
    elsewhere: () => Promise.resolve(undefined),
  };
  return read(store, counter.limit, reading);
}

async function readFrom(parts: RedisParts, counter: Counter): Promise<TenantsNow | undefined> {
  const { client, prefix } = parts;
  let script = scripts.get(client);
  if (script === undefined) scripts.set(client, (script = new Script(client, TENANTS_SCRIPT)));
  const shares = `${keyOf(prefix, counter)}:shares`;
  const reply = await parts.guarded(() => script.run([shares], [String(MOST)], TIMEOUT_MS));
  if (typeof reply !== 'string') return undefined;
  const [sums, tenants] = JSON.parse(reply) as [number[], Stored[]];
  return standings(counter.limit.parameters as ShareParameters, sums, tenants, parts.now());
}

function standings(
  terms: ShareParameters,
  [, length = 0, newest = 0, ...counts]: readonly number[],
  tenants: readonly Stored[],
  now: number,
): TenantsNow | undefined {
  const { shareLength, shareUnits, floor } = terms;
  // The span has changed, and there has been no request since.
  if (length !== shareLength) return undefined;
  const current = Math.max(newest, Math.floor(now / length));
  const weights = sum(later(counts.slice(0, ACTIVE_SLICES), current - newest), 0, ACTIVE_SLICES);
  const known = tenants.flatMap(([id, asked, weight, , ...used]): TenantNow[] => {
    if (current - asked >= ACTIVE_SLICES) return [];
    const own = later(used, current - asked);
    return [{ id, weight, part: partOf(terms, weight, Math.max(weight, weights)), used: sum(own, 0, own.length) }];
  });
  if (known.length === 0) return undefined;
  const spanMs = (length * AGES) / 1000;
  return { tenants: known.toSorted((one, other) => other.used - one.used), weights, units: shareUnits, floor, spanMs };
}
