import { readOptions } from '../options/check-options.js';
import { time, whole } from '../options/kinds.js';
import type { OptionRows } from '../options/option-row.js';
import { type Duration, showDuration } from '../options/values.js';
import type { Algorithm, Parameters, State } from './algorithm.js';
import { Leases } from './leases.js';
import { shareOfUnits } from './share.js';

/** Identifiers are random, so that no two calls use the same one, and well below 2^53, so that every client reads them exactly. */
const CALLS = 2 ** 42;
const IDENTIFIERS_A_CALL = 512;

/** The first identifier of a call, for leases and holds. The call counts up from it. */
export function newIdentifier(): number {
  return Math.floor(Math.random() * CALLS) * IDENTIFIERS_A_CALL;
}

/**
 * Concurrency: a request of cost c is allowed if the units held + c <= limit. It holds them until it releases its lease, or for
 * `ttl` if it never does, for example because its process died; long work renews its lease.
 */
export interface ConcurrencyOptions {
  /** The algorithm. */
  algo: 'concurrency';
  /** The number of units that may be held at once: a whole number >= 1. */
  limit: number;
  /** The time for which units are held if they are not released: milliseconds or a duration such as `'1m'`, at most 1 year. */
  ttl: Duration;
}

export interface ConcurrencyParameters extends Parameters {
  readonly ttl: number;
}

export interface ConcurrencyState extends State {
  /** All stored leases, including those that have ended. They are changed when the state is stored. */
  readonly leases: Leases;
  /** The number of leases that have ended, and their units. */
  ended: { readonly count: number; readonly units: number };
  /** True if the clock was set back: all leases that have not ended count as granted now. */
  collapsed: boolean;
  /** The longest time to live of any of them. */
  readonly longest: number;
  /** The identifier of the next lease. */
  next: number;
}

/** The number of leases that are examined for the exact wait. Beyond that, each counts as one unit, as in the script. */
const MOST = 256;

const options = {
  limit: { kind: whole(), text: 'The number of units that may be held at the same time.', required: true },
  ttl: {
    kind: time,
    text: "How long unreleased units are held: milliseconds or a duration such as '1m', at most 1 year.",
    required: true,
    isLong: true,
  },
} as const satisfies OptionRows;

export const concurrency: Algorithm<ConcurrencyOptions, ConcurrencyParameters, ConcurrencyState> = {
  name: 'concurrency',
  code: 'co',
  extraKeys: ['block'],
  options,

  compile(given, location) {
    const { limit, ttl } = readOptions(location, given, options);
    return { quota: limit, ttl };
  },
  defaultName: ({ algo, limit, ttl }) => `${algo}:${limit}/${showDuration(ttl)}`,
  share: (options, part) => ({ ...options, limit: shareOfUnits(options.limit, part) }),
  window: ({ ttl }) => ttl,
  scriptParameters: ({ ttl }) => [ttl, newIdentifier()],
  work: () => 4,

  open({ ttl }, stored, now) {
    const leases = stored?.leases ?? new Leases();
    const longest = Math.max(ttl, leases.longest);
    const collapsed = (leases.lastEnd ?? now) - now >= 2 * longest;
    return {
      now,
      migrated: collapsed,
      leases,
      ended: leases.endedAt(now),
      collapsed,
      longest,
      next: newIdentifier(),
    };
  },
  fits: ({ quota }, state, cost) => held(state) + cost <= quota,
  take({ ttl }, state, cost) {
    settle(state);
    state.leases.add({ id: state.next++, units: cost, end: state.now + ttl }, ttl);
  },
  give(_, state, units, ticket) {
    release(state, units, ticket);
  },
  save(_, state) {
    settle(state);
    return state;
  },
  bytes: ({ leases }) => 400 + 100 * leases.count,

  remaining: ({ quota }, state) => quota - held(state),
  retryAfter({ quota }, state, cost) {
    const { leases, ended, collapsed, longest, now } = state;
    if (collapsed) return longest;
    return leases.freeing(held(state) + cost - quota, ended.count, MOST).end - now;
  },
  resetAfter: (_, { leases, ended, collapsed, longest, now }) =>
    leases.count === ended.count ? 0 : collapsed ? longest : leases.lastEnd! - now,
  leases: {
    ticket: (_, { next }) => next,
    running: ({ leases, now }) => leases.running(now),
    renew({ ttl }, state, units, ticket) {
      const held = release(state, units, ticket);
      if (held) state.leases.add({ id: ticket, units, end: state.now + ttl }, ttl);
      return held;
    },
  },
};

function held({ leases, ended }: ConcurrencyState): number {
  return leases.units - ended.units;
}

/** Removes leases that have ended, and adjusts the rest if the clock was set back. */
function settle(state: ConcurrencyState): void {
  const { leases, now, longest } = state;
  leases.dropEnded(now);
  state.ended = { count: 0, units: 0 };
  if (state.collapsed) leases.endAllAt(now + longest);
  state.collapsed = false;
}

function release(state: ConcurrencyState, units: number, ticket: number | undefined): boolean {
  const lease = state.leases.find(ticket, units);
  if (lease === undefined || lease.end <= state.now) return false;
  settle(state);
  state.leases.remove(state.leases.find(ticket, units)!);
  return true;
}
