import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { VERSION } from '../../storage/telemetry/version.js';
import type { AdaptiveNow, InstanceInfo } from '../api.js';

/** What an instance publishes about itself. */
export type PublishedInstance = Omit<InstanceInfo, 'self'>;

/** The constant facts about this instance. Its id is unique, even if processes in several containers have equal process ids. */
export function thisInstance() {
  return { id: randomBytes(6).toString('hex'), version: VERSION, host: hostname().slice(0, 64), pid: process.pid };
}

/** Reads what an instance has published; `undefined` if it is malformed. */
export function readInstance(text: unknown): PublishedInstance | undefined {
  try {
    const published = JSON.parse(String(text)) as Record<string, unknown>;
    const { id, version, host, pid, startedAt, clockOffsetMs, lastSeenAt, circuit } = published;
    const isText = [id, version, host].every((each) => typeof each === 'string');
    const isNumber = [pid, startedAt, clockOffsetMs, lastSeenAt].every((each) => Number.isFinite(each));
    const isCircuit = circuit === 'closed' || circuit === 'open' || circuit === 'none';
    if (!isText || !isNumber || !isCircuit) return undefined;
    const adaptive = readAdaptive(published['adaptive']);
    const circuitOpenSince = timeOr(published['circuitOpenSince']);
    return {
      ...({ id, version, host, pid, startedAt, clockOffsetMs, lastSeenAt, circuit } as PublishedInstance),
      ...(circuit === 'open' && circuitOpenSince !== undefined && { circuitOpenSince }),
      ...(adaptive && { adaptive }),
    };
  } catch {
    return undefined;
  }
}

function readAdaptive(published: unknown): Record<string, AdaptiveNow> | undefined {
  if (typeof published !== 'object' || published === null) return undefined;
  const known = Object.entries(published as Record<string, Partial<AdaptiveNow> | null>).flatMap(([label, now]) => {
    const { limit = NaN, inFlight = NaN } = now ?? {};
    if (![limit, inFlight].every((each) => Number.isSafeInteger(each) && each >= 0)) return [];
    const fullSince = timeOr(now?.fullSince);
    return [[label, { limit, inFlight, ...(fullSince !== undefined && { fullSince }) }]];
  });
  return Object.fromEntries(known) as Record<string, AdaptiveNow>;
}

function timeOr(value: unknown): number | undefined {
  return Number.isFinite(value) ? (value as number) : undefined;
}
