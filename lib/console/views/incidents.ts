import type { Incident, Incidents, Tick } from '../api.js';
import { type ConsoleClock, LOST_SHOWN_MS } from '../telemetry/console-redis.js';
import { stepOf } from '../telemetry/timeline.js';
import { findIncidents, type FoundIncident, judged, type JudgedStep } from './find-incidents.js';
import { HOUR_STEPS, MINUTE_STEPS, MOST_KEYS, STEP_MS } from './incident-thresholds.js';
import type { Overviews } from './overviews.js';
import type { TopLists } from './top-lists.js';

/** Incidents are reused for this long, in milliseconds, because several viewers request the same. */
const SHARED_MS = 500;

/** The active incidents over all instances. */
export class IncidentViews {
  /** The known steps of the last hour. They include all limits only in the last minute. */
  private readonly known = new Map<number, JudgedStep | undefined>();
  private last: { readonly at: number; readonly found: Promise<Incidents> } | undefined;

  constructor(
    private readonly overviews: Overviews,
    private readonly top: TopLists,
    private readonly clock: ConsoleClock,
  ) {}

  /** Never rejects because of Redis. */
  now(): Promise<Incidents> {
    const at = this.clock.now();
    if (this.last === undefined || Math.abs(at - this.last.at) > SHARED_MS) this.last = { at, found: this.find(at) };
    return this.last.found;
  }

  /** The newest complete seconds, and the active incidents. */
  async tick(): Promise<Tick> {
    const [tick, { incidents }] = await Promise.all([this.overviews.tick(), this.now()]);
    return { ...tick, incidents };
  }

  private async find(now: number): Promise<Incidents> {
    const current = stepOf(now, STEP_MS);
    const from = current - HOUR_STEPS * STEP_MS;
    for (const step of this.known.keys()) if (step < from) this.known.delete(step);
    let first = from;
    // The steps of the last minute are read again, because an instance can be late.
    while (first < current - MINUTE_STEPS * STEP_MS && this.known.has(first)) first += STEP_MS;
    const reading = await this.overviews.readSteps(STEP_MS, first, current, current - first + LOST_SHOWN_MS);
    const { running, lost, coverage, problem } = reading;
    // Steps of one instance alone don't represent all instances.
    if (problem !== undefined) this.known.clear();
    const steps: (JudgedStep | undefined)[] = [];
    for (let step = from; step <= current; step += STEP_MS) {
      if (step >= first || problem !== undefined) {
        const bucket = reading.steps.at(step);
        const isRecent = step >= current - MINUTE_STEPS * STEP_MS;
        this.known.set(step, bucket && judged(bucket, isRecent));
      }
      steps.push(this.known.get(step));
    }
    if (problem !== undefined) this.known.clear();
    const found = findIncidents({ now, steps, from, running, lost });
    return {
      at: Math.round(now),
      windowMs: Math.round(now - (current - MINUTE_STEPS * STEP_MS)),
      incidents: await this.withKeys(found),
      coverage,
      ...(problem !== undefined && { problem }),
    };
  }

  private async withKeys(found: readonly FoundIncident[]): Promise<Incident[]> {
    if (!found.some((each) => 'limit' in each)) return found as Incident[];
    const { published } = await this.top.read();
    return found.map((each): Incident => {
      if (!('limit' in each)) return each;
      const { keys, since } = this.top.refusedOf(each.limit, published, MOST_KEYS);
      return { ...each, keys, keysSince: since };
    });
  }
}
