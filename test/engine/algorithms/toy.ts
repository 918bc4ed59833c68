import type { Duration } from '../../../lib/index.js';
import type { Algorithm, Parameters, State } from '../../../lib/engine/algorithms/algorithm.js';
import { readOptions } from '../../../lib/engine/options/check-options.js';
import { time, whole } from '../../../lib/engine/options/kinds.js';
import { showDuration } from '../../../lib/engine/options/values.js';
import { shareOfUnits } from '../../../lib/engine/algorithms/share.js';

/** A cool-down: `limit` units, and no more until nothing has been allowed for `rest`. */
export interface CoolDownOptions {
  algo: 'cool-down';
  limit: number;
  rest: Duration;
}

interface CoolDownParameters extends Parameters {
  readonly rest: number;
}

interface CoolDownState extends State {
  count: number;
  start: number;
  end: number;
}

const options = {
  limit: { kind: whole(), text: 'Units.', required: true },
  rest: { kind: time, text: 'The time without units.', required: true },
} as const;

/** An algorithm from outside of the package: its twin is `toy.lua`. */
export const coolDown: Algorithm<CoolDownOptions, CoolDownParameters, CoolDownState> = {
  name: 'cool-down',
  code: 'cd',
  options,

  compile(given, location) {
    const { limit, rest } = readOptions(location, given, options);
    return { quota: limit, rest };
  },
  defaultName: ({ algo, limit, rest }) => `${algo}:${limit}/${showDuration(rest)}`,
  share: (options, part) => ({ ...options, limit: shareOfUnits(options.limit, part) }),
  window: ({ rest }) => rest,
  scriptParameters: ({ rest }) => [rest],

  open({ rest }, stored, now) {
    if (stored === undefined || stored.count === 0 || now >= stored.end) {
      return { now, migrated: false, count: 0, start: now, end: now + rest };
    }
    const { count, start, end } = stored;
    // The rest is shorter now, or the clock was set back.
    if (end - now > rest) return { now, migrated: true, count, start: Math.min(start, now), end: now + rest };
    return { now, migrated: false, count, start, end };
  },
  fits: ({ quota }, { count }, cost) => count + cost <= quota,
  take({ rest }, state, cost) {
    state.count += cost;
    state.end = state.now + rest;
  },
  give(_, state, units, _ticket, chargedAt = state.start) {
    if (chargedAt >= state.start) state.count = Math.max(0, state.count - units);
  },
  save: (_, state) => state,

  remaining: ({ quota }, { count }) => quota - count,
  retryAfter: (_, { end, now }) => end - now,
  resetAfter: (_, { count, end, now }) => (count > 0 ? end - now : 0),
  history: (_, { count, start, end }) =>
    count > 0 ? [{ start: Math.floor(start / 1000), end: Math.floor(end / 1000), count }] : [],
};
