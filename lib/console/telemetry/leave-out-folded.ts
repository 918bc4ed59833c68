import type { ConsoleRedis } from './console-redis.js';
import { RESOLUTIONS, type Timeline } from './timeline.js';

/** Takes what others have moved to the sum of ended instances out of an instance's own counts: stored steps that are gone. */
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
