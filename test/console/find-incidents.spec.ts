import { describe, expect, it } from '@jest/globals';
import type { InstanceInfo } from '../../lib/console/api.js';
import { LatencyHistogram } from '../../lib/console/telemetry/bucket.js';
import {
  type Evidence,
  findIncidents,
  HOUR_STEPS,
  type JudgedStep,
  STEP_MS,
} from '../../lib/console/views/incidents.js';

const FROM = Date.UTC(2030, 0, 1);
/** The current step has just ended. */
const NOW = FROM + (HOUR_STEPS + 1) * STEP_MS;

type Counts = Partial<{ allowed: number; refused: number; near: number }>;

function stepOf(limits: Record<string, Counts>, rest: Partial<JudgedStep> = {}): JudgedStep {
  const all = Object.entries(limits).map(
    ([label, counts]) => [label, { allowed: 0, refused: 0, near: 0, ...counts }] as const,
  );
  return { limits: new Map(all), checks: 0, failed: 0, latencies: new Map(), ...rest };
}

/** An hour in which the last steps are given. */
function evidence(last: (JudgedStep | undefined)[], rest: Partial<Evidence> = {}): Evidence {
  const before = Array.from({ length: HOUR_STEPS + 1 - last.length }, () => undefined);
  return { now: NOW, from: FROM, steps: [...before, ...last], running: [], lost: [], ...rest };
}

const instance = (id: string, rest: Partial<InstanceInfo> = {}): InstanceInfo => ({
  id,
  version: '1.0.0',
  host: 'host',
  pid: 1,
  startedAt: FROM,
  clockOffsetMs: 0,
  lastSeenAt: NOW,
  circuit: 'closed',
  self: false,
  ...rest,
});

const times = (ms: number, count: number) => {
  const histogram = new LatencyHistogram();
  for (let time = 0; time < count; time++) histogram.add(ms);
  return histogram.take();
};

const startOf = (stepsAgo: number) => NOW - (stepsAgo + 1) * STEP_MS;

describe('incidents', () => {
  it('are none while nothing hurts', () => {
    const quiet = stepOf({ api: { allowed: 1000, refused: 9 } }, { checks: 1000, failed: 1, latencies: times(1, 50) });
    expect(findIncidents(evidence([quiet]))).toEqual([]);
    expect(findIncidents(evidence([]))).toEqual([]);
  });

  it('of refusals say how many, since when, and how bad it is', () => {
    const bad = stepOf({ api: { allowed: 50, refused: 50 } });
    const good = stepOf({ api: { allowed: 100 } });
    const [found, ...others] = findIncidents(evidence([bad, good, good, bad, bad, good, bad]));
    expect(others).toEqual([]);
    expect(found).toEqual({
      id: 'refused api',
      kind: 'refused',
      severity: 'critical',
      limit: 'api',
      since: startOf(6),
      sinceEarlier: false,
      allowed: 350,
      refused: 150,
      share: 0.3,
      perSecond: 2,
    });
  });

  it('begin anew after a minute without anything bad', () => {
    const bad = stepOf({ api: { refused: 50 } });
    const [found] = findIncidents(evidence([bad, undefined, undefined, undefined, undefined, bad, bad]));
    expect(found).toMatchObject({ since: startOf(1), sinceEarlier: false });
  });

  it('say that they may have begun before what was read', () => {
    const bad = stepOf({ api: { refused: 50 } });
    const [found] = findIncidents(evidence(Array.from({ length: HOUR_STEPS + 1 }, () => bad)));
    expect(found).toMatchObject({ since: FROM, sinceEarlier: true });
  });

  it('hurt by a small share of very many, and end a minute after it', () => {
    const many = stepOf({ api: { allowed: 100_000, refused: 300 } });
    expect(findIncidents(evidence([many, many, many, many, many]))).toMatchObject([
      { kind: 'refused', severity: 'warning', perSecond: 20 },
    ]);
    const good = stepOf({ api: { allowed: 100 } });
    expect(findIncidents(evidence([many, good, good, good, good, good]))).toEqual([]);
  });

  it('of counters near their quota are not repeated for a limit that refuses', () => {
    const steps = [stepOf({ api: { allowed: 100, near: 12 }, busy: { allowed: 10, refused: 30, near: 30 } })];
    expect(findIncidents(evidence(steps))).toMatchObject([
      { kind: 'refused', limit: 'busy' },
      { kind: 'near', limit: 'api', near: 12, since: startOf(0) },
    ]);
  });

  it('of the store are its failures, and its time against the hour before', () => {
    const before = stepOf({}, { checks: 100, latencies: times(2, 10) });
    const slow = stepOf({}, { checks: 100, latencies: times(9, 10) });
    const failing = stepOf({}, { checks: 100, failed: 40, latencies: times(9, 10) });
    const steps = [...Array.from({ length: 20 }, () => before), slow, failing, failing];
    expect(findIncidents(evidence(steps))).toMatchObject([
      {
        id: 'fallback',
        kind: 'fallback',
        severity: 'warning',
        since: startOf(1),
        checks: 500,
        failed: 80,
        share: 0.16,
      },
      { id: 'latency', kind: 'latency', severity: 'warning', since: startOf(2), p99: expect.closeTo(9, 0) },
    ]);
    const never = [...Array.from({ length: 20 }, () => undefined), slow, slow, slow];
    expect(findIncidents(evidence(never))).toEqual([]);
  });

  it('of instances are open circuits, full adaptive limits, and those that were lost', () => {
    const running = [
      instance('a', { circuit: 'open', circuitOpenSince: NOW - 9000 }),
      instance('b', { circuit: 'open', circuitOpenSince: NOW - 20_000 }),
      instance('c', {
        adaptive: { jobs: { limit: 8, inFlight: 9, fullSince: NOW - 6000 }, idle: { limit: 8, inFlight: 1 } },
      }),
      instance('d', { adaptive: { jobs: { limit: 4, inFlight: 4, fullSince: NOW - 60_000 } } }),
      instance('e', { adaptive: { jobs: { limit: 4, inFlight: 4, fullSince: NOW - 1000 } } }),
    ];
    const lost = [instance('z', { lastSeenAt: NOW - 30_000 })];
    expect(findIncidents(evidence([], { running, lost }))).toEqual([
      {
        id: 'circuit',
        kind: 'circuit',
        severity: 'critical',
        since: NOW - 20_000,
        sinceEarlier: false,
        instances: ['a', 'b'],
      },
      {
        id: 'adaptive jobs',
        kind: 'adaptive',
        severity: 'warning',
        limit: 'jobs',
        since: NOW - 60_000,
        sinceEarlier: false,
        admits: 12,
        inFlight: 13,
        instances: ['c', 'd'],
      },
      {
        id: 'lost z',
        kind: 'lost',
        severity: 'warning',
        since: NOW - 30_000,
        sinceEarlier: false,
        instance: lost[0],
      },
    ]);
  });

  it('are the worst first, in the same order each time, and at most 50', () => {
    const limits = Object.fromEntries(
      Array.from({ length: 80 }, (_, limit) => [`limit-${limit}`, { refused: 20 + limit }]),
    );
    const found = findIncidents(evidence([stepOf(limits)]));
    expect(found).toHaveLength(50);
    expect(found[0]).toMatchObject({ limit: 'limit-79', refused: 99 });
    const reversed = Object.fromEntries(Object.entries(limits).toReversed());
    expect(findIncidents(evidence([stepOf(reversed)]))).toEqual(found);
  });
});
