import type { Command, ConsoleRedis } from './console-redis.js';
import { DEMAND_MS, type UnsentWindow } from './demand-sampler.js';
import { DAY_MS, INDEX_SECONDS } from './lifetimes.js';
import { type OldStep, RESOLUTIONS, type SentStep } from './timeline.js';

/** An interval of an hour that began an hour ago is still read. */
const DEMAND_SECONDS = (2 * DEMAND_MS) / 1000;

/** The steps of a call. */
export interface Sent {
  readonly steps: readonly SentStep[];
  readonly old: readonly OldStep[];
}

/** Says that an instance runs, or that it ends. */
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

/** Stores steps of an instance, and removes those that are no longer kept. */
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

/** Stores what keys asked for in some intervals of limits. */
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
