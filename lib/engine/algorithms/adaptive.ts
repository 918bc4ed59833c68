import { AdaptiveLimit } from './adaptive-limit.js';
import {
  type AdaptiveOptions,
  adaptiveOptions,
  type AdaptiveParameters,
  adaptiveParameters,
} from './adaptive-options.js';
import type { Algorithm } from './algorithm.js';

/** The time for which an unused limit is kept, in microseconds. */
const REMEMBERED = 3600 * 1_000_000;

/** Limits requests in flight based on their latency and throughput. It only exists in process, without a counterpart in the script. */
export const adaptive: Algorithm<AdaptiveOptions, AdaptiveParameters, AdaptiveLimit> = {
  name: 'adaptive',
  code: 'ad',
  options: adaptiveOptions,

  compile: adaptiveParameters,
  defaultName: ({ algo, min, max }) =>
    min === undefined && max === undefined ? algo : `${algo}:${min ?? 2}-${max ?? 1000}`,
  share: (options) => options,
  window: ({ ttl }) => ttl,
  scriptParameters: () => [],

  open(parameters, stored, now) {
    const state = stored ?? new AdaptiveLimit(parameters, now, now);
    state.advance(parameters, now);
    return state;
  },
  // A single request is always let in, because otherwise a cost above the limit would wait forever.
  fits: (parameters, state, cost) => state.occupied + cost <= state.room(parameters) || state.flights.units === 0,
  take(_, state, cost) {
    state.enter(cost);
  },
  give(parameters, state, _units, ticket) {
    if (ticket !== undefined) state.leave(parameters, ticket, 'ignored');
  },
  save: (_, state) => state,
  bytes: ({ flights }) => 8000 + 100 * flights.count,

  remaining: (parameters, state) => Math.max(0, Math.floor(state.room(parameters) - state.occupied)),
  // Shorter waits are likely, considering how long requests are held.
  retryAfter: ({ ttl }, { flights, now }) => (flights.last === undefined ? 1 : Math.max(1, flights.last + ttl - now)),
  resetAfter: ({ ttl }, { flights, now }) => (flights.count === 0 ? 0 : Math.max(0, flights.last! + ttl - now)),
  keepFor: () => REMEMBERED,
  leases: {
    ticket: (_, { ticket }) => ticket,
    renew: () => false,
  },
  adapting: {
    status: ({ status }) => status,
    quota: ({ min, quota }, { limit }) => Math.min(quota, Math.max(min, Math.floor(limit))),
    inFlight: (_, { occupied }) => Math.ceil(occupied),
    asked(parameters, state, question) {
      state.asked(parameters, question);
    },
    ended(parameters, state, ticket, end) {
      state.leave(parameters, ticket, end);
    },
  },
};
