import type { Algorithm, Parameters, State } from './algorithm.js';
import { duration, type Duration, showDuration, wholeNumber } from './options.js';

/**
 * Concurrency: a request of cost c is allowed if the units that are held + c <= limit. It holds them until it releases its
 * lease, or for `ttl` if it never does, as when its process dies; long work renews its lease.
 */
export interface ConcurrencyOptions {
  /** The algorithm. */
  algo: 'concurrency';
  /** Units that may be held at once: a whole number >= 1. */
  limit: number;
  /** How long units are held that nobody releases: milliseconds or a duration such as `'1m'`, at most 1 year. */
  ttl: Duration;
}

export interface ConcurrencyParameters extends Parameters {
  readonly ttl: number;
}

interface HeldUnits {
  readonly id: number;
  readonly units: number;
  /** When they are free again, in microseconds. */
  readonly end: number;
}

export interface ConcurrencyState extends State {
  /** The one that ends first comes first. */
  leases: readonly HeldUnits[];
  held: number;
  /** The identifier of the next lease. */
  next: number;
}

/** Identifiers are random, so that two calls never use the same, and well below 2^53, where every client reads them exactly. */
const CALLS = 2 ** 42;
const LEASES_A_CALL = 512;

function newIdentifier(): number {
  return Math.floor(Math.random() * CALLS) * LEASES_A_CALL;
}

export const concurrency: Algorithm<ConcurrencyOptions, ConcurrencyParameters, ConcurrencyState> = {
  name: 'concurrency',
  code: 'co',
  companions: ['block'],
  options: ['limit', 'ttl'],

  compile: (options, place) => ({
    quota: wholeNumber(place, 'limit', options.limit),
    ttl: duration(place, 'ttl', options.ttl),
  }),
  defaultName: ({ algo, limit, ttl }) => `${algo}:${limit}/${showDuration(ttl)}`,
  window: ({ ttl }) => ttl,
  scriptParameters: ({ ttl }) => [ttl, newIdentifier()],

  open({ ttl }, stored, now) {
    const next = newIdentifier();
    const leases = stored?.leases ?? [];
    const last = leases.at(-1)?.end ?? now;
    const moved = last - now >= 2 * ttl;
    // The clock was set back: all leases count as given now.
    const running = moved
      ? leases.map((lease) => ({ ...lease, end: now + ttl }))
      : leases.filter(({ end }) => end > now);
    return { now, moved, leases: running, held: sum(running), next };
  },
  fits: ({ quota }, { held }, cost) => held + cost <= quota,
  take({ ttl }, state, cost) {
    hold(state, { id: state.next++, units: cost, end: state.now + ttl });
  },
  give(_, state, units, place) {
    release(state, units, place);
  },
  save: (_, state) => state,
  bytes: ({ leases }) => 100 * leases.length,

  remaining: ({ quota }, { held }) => quota - held,
  retryAfter({ quota }, { leases, held, now }, cost) {
    let excess = held + cost - quota;
    const freeing = leases.find(({ units }) => (excess -= units) <= 0);
    return freeing!.end - now;
  },
  resetAfter: (_, { leases, now }) => (leases.length > 0 ? leases.at(-1)!.end - now : 0),
  /** Nothing is delayed; the place is the identifier of the lease. */
  delay: () => 0,
  place: (_, { next }) => next,
  renew({ ttl }, state, units, place) {
    const held = release(state, units, place);
    if (held) hold(state, { id: place, units, end: state.now + ttl });
    return held;
  },
};

function sum(leases: readonly HeldUnits[]): number {
  return leases.reduce((held, { units }) => held + units, 0);
}

function hold(state: ConcurrencyState, lease: HeldUnits): void {
  const after = state.leases.findLastIndex(({ end }) => end <= lease.end) + 1;
  state.leases = state.leases.toSpliced(after, 0, lease);
  state.held += lease.units;
}

function release(state: ConcurrencyState, units: number, place: number | undefined): boolean {
  const leases = state.leases.filter(({ id, units: held }) => id !== place || held !== units);
  const found = leases.length < state.leases.length;
  if (found) state.held -= units;
  state.leases = leases;
  return found;
}
