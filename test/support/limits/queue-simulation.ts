import { type AdaptiveOptions, type LeaseEnd, MemoryStore, type Priority } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import type { ProcessLoad } from '../../../lib/engine/algorithms/algorithm.js';
import { randomNumbers } from '../../../lib/cli/simulate/random-numbers.js';
import { PRIORITIES } from '../../../lib/engine/limits/arguments.js';
import { Heap } from '../../../lib/engine/util/heap.js';
import { ManualClock } from './stores.js';

/** A server with so many workers and one queue, and those who call it without waiting for each other. Times are milliseconds. */
export interface Simulated {
  readonly options?: Partial<AdaptiveOptions>;
  readonly durationMs: number;
  readonly seed?: number;
  /** How many requests it works on at once. */
  readonly servers: (now: number) => number;
  /** How long it works on one; exponential times make it M/M/c. */
  readonly serviceMs: (now: number, random: () => number) => number;
  /** Requests a second, at random moments. */
  readonly rate: (now: number) => number;
  readonly priority?: (random: () => number) => Priority;
  /** How a request ends that took so long; and whether the caller waits no longer. */
  readonly end?: (latencyMs: number, now: number) => LeaseEnd;
  /** What never ends: it is not released, though its worker is free again. */
  readonly isLost?: (now: number, random: () => number) => boolean;
  /** How long a caller waits; then the request ends as `'dropped'`, while the server still works on it. */
  readonly timeoutMs?: number;
  readonly load?: ProcessLoad;
}

/** What was seen in one second. */
export interface Second {
  offered: number;
  admitted: number;
  completed: number;
  dropped: number;
  /** What a decision said last. */
  limit: number;
  mostInFlight: number;
  latencies: number[];
  readonly shed: Record<Priority, number>;
  readonly asked: Record<Priority, number>;
}

interface Job {
  readonly since: number;
  readonly ticket: number;
  readonly isLost: boolean;
  isOver: boolean;
}

interface Happening {
  readonly at: number;
  readonly act: () => void;
}

export const exponential = (meanMs: number) => (_: number, random: () => number) => -Math.log(1 - random()) * meanMs;

const IDLE: ProcessLoad = { eventLoopDelay: 0, cpu: 0 };

/** Plays requests to a store in process, whose clock is moved. */
export function simulateQueue(given: Simulated): Second[] {
  const { options, durationMs, seed = 1, priority = () => 'default', timeoutMs, load = IDLE } = given;
  const random = randomNumbers(seed);
  const clock = new ManualClock();
  const start = clock.micros;
  const store = new MemoryStore({ clock: clock.now, load });
  const limit = new CompiledLimit({ algo: 'adaptive', ...options }, { location: 'test', instance: true });
  const queue: Job[] = [];
  const happenings = new Heap<Happening>((one, other) => one.at < other.at);
  const seconds = Array.from({ length: Math.ceil(durationMs / 1000) }, newSecond);
  let busy = 0;
  let inFlight = 0;
  let now = 0;
  const second = () => seconds[Math.min(seconds.length - 1, Math.floor(now / 1000))]!;
  const at = (time: number, act: () => void) => happenings.add({ at: time, act });

  const finish = (job: Job, end: LeaseEnd) => {
    if (job.isOver) return;
    job.isOver = true;
    inFlight--;
    if (job.isLost) return;
    if (end === 'completed') {
      second().completed++;
      second().latencies.push(now - job.since);
    } else if (end === 'dropped') second().dropped++;
    void store.refund([{ limit, identity: 'global', units: 1, ticket: job.ticket, end }]);
  };
  const work = () => {
    while (busy < given.servers(now) && queue.length > 0) {
      const job = queue.shift()!;
      busy++;
      at(now + given.serviceMs(now, random), () => {
        busy--;
        finish(job, given.end?.(now - job.since, now) ?? 'completed');
        work();
      });
    }
  };
  const arrive = () => {
    const rank = priority(random);
    const seen = second();
    seen.offered++;
    seen.asked[rank]++;
    const [decision] = store.decideAtOnce({ entries: [{ limit, identity: 'global', cost: 1, priority: rank }] });
    seen.limit = decision!.quota;
    if (decision!.allowed) {
      seen.admitted++;
      inFlight++;
      seen.mostInFlight = Math.max(seen.mostInFlight, inFlight);
      const isLost = given.isLost?.(now, random) ?? false;
      const job = { since: now, ticket: decision!.ticket!, isLost, isOver: false };
      if (timeoutMs !== undefined) at(now + timeoutMs, () => finish(job, 'dropped'));
      queue.push(job);
      work();
    } else seen.shed[rank]++;
    next();
  };
  const next = () => {
    const rate = given.rate(now);
    if (rate > 0) at(now - (Math.log(1 - random()) * 1000) / rate, arrive);
    // Nobody comes: it is looked at again soon.
    else at(now + 100, next);
  };

  next();
  for (let happening = happenings.take(); happening !== undefined; happening = happenings.take()) {
    now = happening.at;
    if (now >= durationMs) break;
    // Whole milliseconds, as the clock of a process has them.
    clock.micros = start + Math.floor(now) * 1000;
    happening.act();
  }
  void store.close();
  return seconds;
}

/** Some seconds together. */
export function summed(seconds: readonly Second[]) {
  const sum = (of: (second: Second) => number) => seconds.reduce((total, each) => total + of(each), 0);
  // In a second without a request nobody is told the limit.
  const limits = seconds.filter(({ offered }) => offered > 0).map(({ limit }) => limit);
  const latencies = seconds.flatMap((each) => each.latencies).toSorted((one, other) => one - other);
  const shares = PRIORITIES.map((rank) => [
    rank,
    sum(({ shed }) => shed[rank]) / (sum(({ asked }) => asked[rank]) || 1),
  ]);
  return {
    /** Requests a second that were answered. */
    goodput: sum(({ completed }) => completed) / seconds.length,
    admitted: sum(({ admitted }) => admitted),
    shed: sum(({ shed }) => PRIORITIES.reduce((total, rank) => total + shed[rank], 0)),
    /** The share of each priority that was shed. */
    shedShare: Object.fromEntries(shares) as Record<Priority, number>,
    meanMs: latencies.reduce((total, each) => total + each, 0) / latencies.length,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)]!,
    mostInFlight: Math.max(...seconds.map(({ mostInFlight }) => mostInFlight)),
    meanLimit: limits.reduce((total, each) => total + each, 0) / limits.length,
    largest: Math.max(...limits),
    smallest: Math.min(...limits),
  };
}

const none = () => ({ critical: 0, default: 0, sheddable: 0 });

function newSecond(): Second {
  return {
    offered: 0,
    admitted: 0,
    completed: 0,
    dropped: 0,
    limit: 0,
    mostInFlight: 0,
    latencies: [],
    shed: none(),
    asked: none(),
  };
}
