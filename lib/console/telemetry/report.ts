import { type Command, type ConsoleRedis, DAY_MS, INDEX_SECONDS } from './console-redis.js';
import { DEMAND_MS, type UnsentWindow } from './demand-sampler.js';
import { type OldStep, RESOLUTIONS, type SentStep, type Timeline } from './timeline.js';
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { VERSION } from '../../storage/telemetry/version.js';
import type { AdaptiveNow, InstanceInfo } from '../api.js';

/** The data that an instance publishes about itself. */
export type PublishedInstance = Omit<InstanceInfo, 'self'>;

/** The constant data of this instance. Its id is unique, even if processes in several containers have equal process ids. */
export function thisInstance() {
  return { id: randomBytes(6).toString('hex'), version: VERSION, host: hostname().slice(0, 64), pid: process.pid };
}

/** Reads the data that an instance has published; `undefined` if it is malformed. */
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

/** Subtracts steps that others have moved to the sum of ended instances from an instance's own counts: stored steps that are gone. */
export async function leaveOutFolded(redis: ConsoleRedis, id: string, timeline: Timeline): Promise<void> {
  const { keys } = redis;
  for (const { stepMs } of RESOLUTIONS) {
    const steps = timeline.storedSteps(stepMs);
    if (steps.length === 0) continue;
    const [reply] = await redis.run([['hmget', keys.counts(id, stepMs), ...steps]]);
    const held = reply as (string | null)[];
    const gone = steps.filter((_, index) => held[index] === null);
    timeline.takeFolded(stepMs, gone);
  }
  await redis.run([['del', keys.folded(id)]]);
}

/** An interval of an hour that began an hour ago is still read. */
const DEMAND_SECONDS = (2 * DEMAND_MS) / 1000;

/** The steps of a call. */
export interface Sent {
  readonly steps: readonly SentStep[];
  readonly old: readonly OldStep[];
}

/** Reports that an instance is running, or that it ends. */
export function reportOf({ keys }: ConsoleRedis, id: string, now: number, isLeaving: boolean): Command[] {
  const [to, from] = isLeaving ? [keys.endings, keys.reports] : [keys.reports, keys.endings];
  const commands: Command[] = [
    ['zadd', to, now, id],
    ['expire', to, INDEX_SECONDS],
    ['zadd', keys.seen, now, id],
    ['expire', keys.seen, (2 * DAY_MS) / 1000],
  ];
  if (isLeaving) commands.push(['zrem', from, id], ['del', keys.instance(id), keys.about(id)]);
  return commands;
}

/** Stores steps of an instance, and deletes those that are no longer kept. */
export function storingOf({ keys }: ConsoleRedis, id: string, { steps, old }: Sent): Command[] {
  const commands: Command[] = [];
  for (const { stepMs, steps: kept } of RESOLUTIONS) {
    const key = keys.counts(id, stepMs);
    const fields = steps.filter((each) => each.stepMs === stepMs).flatMap(({ step, text }) => [step, text]);
    const gone = old.filter((each) => each.stepMs === stepMs).map(({ step }) => step);
    if (fields.length > 0) commands.push(['hset', key, ...fields], ['expire', key, (stepMs / 1000) * (kept + 4)]);
    if (gone.length > 0) commands.push(['hdel', key, ...gone]);
  }
  return commands;
}

/** Stores the demand of keys in some intervals of limits. */
export function storingDemand({ keys }: ConsoleRedis, id: string, windows: readonly UnsentWindow[]): Command[] {
  return windows.flatMap(({ label, intervalMs, window, text, gone }): Command[] => {
    const key = keys.demand(id, label, intervalMs);
    const stored: Command[] = [
      ['hset', key, window, text],
      ['expire', key, DEMAND_SECONDS],
    ];
    return gone.length === 0 ? stored : [...stored, ['hdel', key, ...gone]];
  });
}
