import type { Frequent, Summary } from './space-saving.js';

/** A key as instances publish it: hash, count, error, and the identity if it was kept, which consoles with hashed identities do not show. */
export type PublishedKey = readonly [id: string, count: number, error: number, identity?: string];

/** What an instance publishes about the keys of a limit. */
export type PublishedLimit = readonly [
  label: string,
  since: number,
  refused: readonly PublishedKey[],
  refusedFloor: number,
  used: readonly PublishedKey[],
  usedFloor: number,
  /** `null` if used units are not counted; instances of the release before count them since `since`. */
  usedSince?: number | null,
];

/** What an instance publishes about the keys of its limits. */
export type PublishedLimits = readonly PublishedLimit[];

/** What instances know about the keys of a limit. */
export interface MergedKeys {
  readonly refused: readonly Summary[];
  readonly used: readonly Summary[];
  /** When the first of them began to count; `null` if none does. */
  readonly since: number | null;
  readonly usedSince: number | null;
  /** The identities of hashes, where they were kept. */
  readonly identities: ReadonlyMap<string, string>;
}

/** Merges what instances have published about one limit. */
export function mergePublished(published: readonly PublishedLimits[], label: string): MergedKeys {
  const identities = new Map<string, string>();
  const read = (keys: readonly PublishedKey[]): Frequent[] =>
    keys.map(([id, count, error, identity]) => {
      if (identity !== undefined) identities.set(id, identity);
      return { key: id, count, error };
    });
  const refused: Summary[] = [];
  const used: Summary[] = [];
  let since: number | null = null;
  let usedSince: number | null = null;
  for (const limits of published) {
    for (const [name, begun, refusedKeys, refusedFloor, usedKeys, usedFloor, usedBegun = begun] of limits) {
      if (name !== label) continue;
      refused.push({ frequent: read(refusedKeys), floor: refusedFloor });
      since = Math.min(since ?? begun, begun);
      if (usedBegun === null) continue;
      used.push({ frequent: read(usedKeys), floor: usedFloor });
      usedSince = Math.min(usedSince ?? usedBegun, usedBegun);
    }
  }
  return { refused, used, since, usedSince, identities };
}

/** Reads what another instance published; `undefined` if it is malformed, such as that of another release. */
export function readLimits(reply: unknown): PublishedLimits | undefined {
  try {
    const published = JSON.parse(String(reply)) as unknown;
    return Array.isArray(published) && published.every(isLimit) ? (published as PublishedLimits) : undefined;
  } catch {
    return undefined;
  }
}

function isLimit(limit: unknown): boolean {
  if (!Array.isArray(limit)) return false;
  const [label, since, refused, refusedFloor, used, usedFloor, usedSince = null] = limit as unknown[];
  const areNumbers = [since, refusedFloor, usedFloor, usedSince ?? 0].every((each) => Number.isFinite(each));
  return typeof label === 'string' && areNumbers && [refused, used].every(areKeys);
}

function areKeys(keys: unknown): boolean {
  return Array.isArray(keys) && keys.every(isKey);
}

function isKey(key: unknown): boolean {
  if (!Array.isArray(key)) return false;
  const [id, count, error, identity] = key as unknown[];
  const areNumbers = Number.isFinite(count) && Number.isFinite(error);
  return typeof id === 'string' && areNumbers && (identity === undefined || typeof identity === 'string');
}
