import type { Algorithm, Parameters, State } from '../../../engine/algorithms/algorithm.js';
import { inProportion } from '../../../engine/algorithms/scale.js';
import {
  ACTIVE_SLICES,
  emptyRecord,
  emptySums,
  forgetIdle,
  isBeyondPart,
  later,
  type Leader,
  partOf,
  type PartTerms,
  SHARE_SLICES,
  type ShareSums,
  sum,
  type TenantRecord,
  type Tenants,
  withLeader,
  withRecord,
} from './tenant-record.js';

/** A tenant of a limit whose units are shared. */
export interface Tenant {
  /** Identifies the tenant. Its length is limited, and its characters need no escaping. */
  readonly id: string;
  /** The weight: a whole number >= 1. */
  readonly weight: number;
}

/** The parameters of a shared limit, in addition to those of its algorithm. */
export interface ShareParameters extends Parameters, PartTerms {
  /** The length of a slice of a span, in microseconds. */
  readonly shareLength: number;
  /** `undefined` without a tenant; only the total counts then. */
  readonly tenant?: Tenant;
}

/** The state of a shared limit, in addition to that of its algorithm. */
interface SharedState extends State {
  /** True if nothing of the total is stored, so that it is empty. */
  isFresh?: boolean;
  shares?: { readonly sums: ShareSums; readonly leaders: readonly Leader[]; readonly tenants: Tenants } | undefined;
  /** The current tenant; `sums` contains all others. */
  asking?: Asking | undefined;
}

interface Asking {
  readonly sums: ShareSums;
  readonly leaders: readonly Leader[];
  /** Other tenants whose expected use in the sums is more than their parts. */
  readonly beyond: readonly BeyondPart[];
  readonly tenants: Tenants;
  readonly newest: number;
  readonly used: number[];
  readonly asked: number[];
  /** True if the tenant has requested units, not only read. */
  changed: boolean;
}

/** A tenant whose expected use is more than its current part. */
interface BeyondPart {
  readonly weight: number;
  readonly expected: number;
  /** The units that it used in each slice, the newest first. */
  readonly used: readonly number[];
  /** The number of slices since its last request. */
  readonly since: number;
}

/** The position of a tenant in a slice, if there are no requests until then. */
interface Standing {
  /** The units that it may use in a span, regardless of others. */
  readonly part: number;
  /** The units that it used. */
  readonly used: number;
  /** The units that are kept for others. */
  readonly kept: number;
}

/** The estimated bytes of a tenant in process. */
const BYTES_OF_TENANT = 500;

const sharing = new WeakMap<Algorithm, Algorithm>();

/**
 * Adapts an algorithm to a limit whose units are shared (max-min fairness with units held back in advance). A request fits if it fits the
 * total, and if the tenant stays within its part or leaves the units that the other active tenants may still claim. The part is `weight` /
 * sum of the active weights x quota, and at least the floor. A tenant may still claim its expected use in a span, at most its part, less
 * the units that it has used. A tenant is active for a span and two of its slices after a request; the span is the time in which the quota
 * comes back, and at least the interval. The total is counted as without shares.
 */
export function sharedBy(algorithm: Algorithm): Algorithm {
  let shared = sharing.get(algorithm);
  if (shared === undefined) sharing.set(algorithm, (shared = share(algorithm as Algorithm<never, ShareParameters>)));
  return shared;
}

function share(total: Algorithm<never, ShareParameters>): Algorithm {
  const shared: Partial<Algorithm<never, ShareParameters, SharedState>> = {
    scriptPrefix: 'shares+',
    moreKeys: ({ tenant }) => ['shares', ...(tenant === undefined ? [] : [`share:${tenant.id}`])],
    work: (parameters) => 18 + (total.work?.(parameters) ?? 1),
    scriptParameters: (parameters, now) => [
      ...total.scriptParameters(parameters, now),
      parameters.shareUnits,
      parameters.shareLength,
      parameters.floor,
      parameters.tenant?.weight ?? 0,
      JSON.stringify(parameters.tenant?.id ?? ''),
    ],
    open(parameters, stored, now) {
      const state: SharedState = { ...total.open(parameters, stored?.isFresh === true ? undefined : stored, now) };
      state.shares = stored?.shares;
      state.asking = undefined;
      if (parameters.tenant !== undefined) state.asking = openShares(state.shares, parameters, now);
      return state;
    },
    fits: (parameters, state, cost) => {
      if (!total.fits(parameters, state, cost)) return false;
      const { asking } = state;
      if (asking === undefined) return true;
      return total.fits(parameters, state, needed(standing(parameters, asking, 0), cost));
    },
    take(parameters, state, cost) {
      total.take(parameters, state, cost);
      ask(parameters, state, cost, cost);
    },
    refuse(parameters, state, cost) {
      ask(parameters, state, cost, 0);
      return state.asking !== undefined;
    },
    give(parameters, state, units, ticket, chargedAt) {
      total.give(parameters, state, units, ticket, chargedAt);
      if (state.asking !== undefined) giveBack(state.asking, units, chargedAt);
    },
    save(parameters, state) {
      const { asking, shares } = state;
      const saved: SharedState = { ...total.save(parameters, state) };
      saved.shares = asking?.changed === true ? saveShares(parameters, asking) : shares;
      saved.asking = undefined;
      saved.isFresh = (total.keepFor?.(parameters, state) ?? total.resetAfter(parameters, state)) <= 0;
      return saved;
    },
    keepFor(parameters, state) {
      const needed = total.keepFor?.(parameters, state) ?? total.resetAfter(parameters, state);
      const { asking, shares, now } = state;
      const newest = asking?.changed === true ? asking.newest : shares?.sums.newest;
      if (newest === undefined) return needed;
      return Math.max(needed, (newest + ACTIVE_SLICES + 1) * parameters.shareLength - now);
    },
    bytes: (state) => (total.bytes?.(state) ?? 0) + BYTES_OF_TENANT * (state.shares?.tenants.size ?? 0),
    remainingForAll: (parameters, state) => total.remaining(parameters, state),
    remaining(parameters, state) {
      const left = total.remaining(parameters, state);
      if (state.asking === undefined) return left;
      const { part, used, kept } = standing(parameters, state.asking, 0);
      return used === 0 ? left : Math.max(Math.min(left, part - used), left - kept);
    },
    retryAfter(parameters, state, cost) {
      const { asking, now } = state;
      if (asking === undefined) return total.retryAfter(parameters, state, cost);
      const { newest } = asking;
      const { shareLength } = parameters;
      for (let by = 0; by < ACTIVE_SLICES; by++) {
        const units = needed(standing(parameters, asking, by), cost);
        if (units > parameters.quota) continue;
        const begins = by === 0 ? 0 : (newest + by) * shareLength - now;
        const wait = total.fits(parameters, state, units) ? 0 : total.retryAfter(parameters, state, units);
        const millis = wholeMillis(Math.max(begins, wait));
        if (millis < (newest + by + 1) * shareLength - now) return millis;
      }
      const rest = total.fits(parameters, state, cost) ? 0 : total.retryAfter(parameters, state, cost);
      return wholeMillis(Math.max((newest + ACTIVE_SLICES) * shareLength - now, rest));
    },
  };
  const without = { reopen: undefined, reservation: undefined, prefetch: undefined };
  return { ...total, ...shared, ...without } as unknown as Algorithm;
}

/** Units that must be free for a request to fit. */
function needed({ part, used, kept }: Standing, cost: number): number {
  // A tenant that has used nothing may request more than its part at once.
  return used === 0 || used + cost <= part ? cost : cost + kept;
}

function openShares(stored: SharedState['shares'], parameters: ShareParameters, now: number): Asking {
  const { shareLength: length, tenant } = parameters;
  const { id, weight } = tenant!;
  const current = Math.floor(now / length);
  // Unknown if the clock was set back or the span has changed. The total use is kept.
  const isKnown = stored?.sums.length === length && stored.sums.newest - current <= SHARE_SLICES;
  const sums = isKnown ? stored.sums : emptySums(length, current);
  const tenants: Tenants = isKnown ? stored.tenants : new Map();
  const leaders = isKnown ? stored.leaders : NO_LEADERS;
  const by = Math.max(0, current - sums.newest);
  const newest = sums.newest + by;
  const record = tenants.get(id) ?? emptyRecord(sums.newest);
  const { weights, expected, used } = withRecord(sums, record, -1);
  const others = {
    length,
    newest,
    weights: later(weights, by),
    expected: later(expected, by),
    used: later(used, by),
  };
  const since = newest - record.newest;
  const all = weight + sum(others.weights, 0, ACTIVE_SLICES);
  const beyond = leaders.flatMap((leader) =>
    leader.id !== id && newest - leader.newest < ACTIVE_SLICES && isBeyondPart(parameters, leader, all)
      ? beyondPart(tenants.get(leader.id), newest)
      : [],
  );
  return {
    sums: others,
    leaders,
    beyond,
    tenants,
    newest,
    used: later(record.used, since),
    asked: later(record.asked, since),
    changed: false,
  };
}

const NO_LEADERS: readonly Leader[] = [];

function beyondPart(record: TenantRecord | undefined, newest: number): BeyondPart[] {
  if (record === undefined) return [];
  const { weight, expected } = record;
  const since = newest - record.newest;
  return [{ weight, expected, used: later(record.used, since), since }];
}

/** The position of a tenant `by` slices later. */
function standing(parameters: ShareParameters, { sums, used, beyond }: Asking, by: number): Standing {
  const { quota, shareUnits, tenant } = parameters;
  const ages = Math.max(0, SHARE_SLICES + 1 - by);
  const active = Math.max(0, ACTIVE_SLICES - by);
  const { weight } = tenant!;
  const weights = weight + sum(sums.weights, 0, active);
  const part = partOf(parameters, weight, weights);
  // A tenant on its own can always take its part of the units that are available at once.
  const most = quota - Math.min(quota, shareUnits === quota ? part : inProportion(quota, weight, weights));
  let claimed = sum(sums.expected, 0, active) - sum(sums.used, 0, ages);
  for (const other of beyond) {
    if (other.since >= active) continue;
    const left = other.expected - sum(other.used, 0, ages);
    const least = Math.min(other.expected, partOf(parameters, other.weight, weights));
    claimed -= Math.max(0, left) - Math.max(0, left - other.expected + least);
  }
  return { part, used: sum(used, 0, ages), kept: Math.max(0, Math.min(claimed, most)) };
}

function ask({ shareUnits }: ShareParameters, { asking }: SharedState, cost: number, taken: number): void {
  if (asking === undefined) return;
  asking.used[0]! += taken;
  asking.asked[0] = Math.min(shareUnits, asking.asked[0]! + cost);
  asking.changed = true;
}

/** Returns units, the newest first, except those that no longer count. */
function giveBack(asking: Asking, units: number, chargedAt: number | undefined): void {
  const { used, asked, sums, newest } = asking;
  if (chargedAt !== undefined && newest - Math.floor(chargedAt / sums.length) > SHARE_SLICES) return;
  asking.changed = true;
  for (let age = 0; age <= SHARE_SLICES && units > 0; age++) {
    const given = Math.min(units, used[age]!);
    used[age]! -= given;
    asked[age] = Math.max(0, asked[age]! - given);
    units -= given;
  }
}

function saveShares(parameters: ShareParameters, asking: Asking): SharedState['shares'] {
  const { sums, leaders, tenants, newest, used, asked } = asking;
  const { id, weight } = parameters.tenant!;
  const lately = sum(asked, 0, SHARE_SLICES + 1);
  const before = sum(asked, 1, SHARE_SLICES + 2);
  const expected = Math.min(standing(parameters, asking, 0).part, Math.max(lately, before));
  const record = { newest, weight, expected, used, asked };
  tenants.delete(id);
  tenants.set(id, record);
  return {
    sums: forgetIdle(tenants, withRecord(sums, record, 1)),
    leaders: withLeader(leaders, { id, newest, weight, expected }),
    tenants,
  };
}

function wholeMillis(micros: number): number {
  return Math.ceil(micros / 1000) * 1000;
}
