import { issuesTickets, type State } from '../../../engine/algorithms/algorithm.js';
import { isRefusal } from '../../../engine/limits/decision.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../../engine/limits/counter.js';
import type { StoreDecision } from '../store.js';
import type { CounterTable } from './counter-table.js';
import { toMs } from './evaluation.js';
import { type Entry, keyOf, type LimitCounters } from './limit-counters.js';

/** Checks with more limits take the general way. */
const MOST_LIMITS = 16;

/** A counter of the check that is being decided. */
class Slot {
  counters!: LimitCounters;
  stored!: Entry;
  state!: State;
  allowed = false;
}

/** Decides most checks in a few steps: limits without features, and counters without blocks, estimates or credits. */
export class SimpleChecks {
  private readonly slots = Array.from({ length: MOST_LIMITS }, () => new Slot());

  constructor(
    private readonly table: CounterTable,
    /** Milliseconds added to every time to live. */
    private readonly slackMs: number,
  ) {}

  /** Decides a check of one limit. Returns nothing, without changing anything, if that takes more steps. */
  one(limit: CompiledLimit, identity: string, cost: number, now: number): StoreDecision | undefined {
    if (!this.open(0, limit, identity, cost, now)) return undefined;
    const slot = this.slots[0]!;
    return this.commit(slot, limit, cost, slot.allowed, now);
  }

  /** Decides a check and charges all entries or none. Returns nothing, without changing anything, if that takes more steps. */
  check(entries: readonly CheckEntry[], isRefundable: boolean, now: number): StoreDecision[] | undefined {
    const { length } = entries;
    if (length > MOST_LIMITS) return undefined;
    let charges = true;
    for (let i = 0; i < length; i++) {
      const { limit, identity, cost } = entries[i]!;
      if (!this.open(i, limit, identity, cost, now)) return this.leave(entries, i);
      if (isRefusal(limit, this.slots[i]!)) charges = false;
    }
    const decisions: StoreDecision[] = [];
    for (let i = 0; i < length; i++) {
      const { limit, cost } = entries[i]!;
      const decision = this.commit(this.slots[i]!, limit, cost, charges, now);
      if (isRefundable) decision.chargedAt = now;
      decisions.push(decision);
    }
    return decisions;
  }

  /** Opens a counter. Returns true if a few steps can decide it. */
  private open(index: number, limit: CompiledLimit, identity: string, cost: number, now: number): boolean {
    const { slots } = this;
    const counters = this.table.of(limit);
    if (cost === 0 || !counters.areSimpleFor(limit, isSimple)) return false;
    for (let i = 0; i < index; i++) if (slots[i]!.counters === counters) return false;
    const stored = counters.get(keyOf(identity));
    if (stored?.state === undefined || stored.block !== undefined || stored.estimates !== undefined) return false;
    const { algorithm, parameters, quota } = limit;
    const state = counters.open(limit, stored.expiresAt > now ? stored.state : undefined, now);
    if (state.migrated) {
      counters.reuse(algorithm, state);
      return false;
    }
    const slot = slots[index]!;
    slot.counters = counters;
    slot.stored = stored;
    slot.state = state;
    slot.allowed = cost <= quota && algorithm.fits(parameters, state, cost);
    return true;
  }

  private leave(entries: readonly CheckEntry[], opened: number): undefined {
    for (let i = 0; i < opened; i++) {
      const { counters, state } = this.slots[i]!;
      counters.reuse(entries[i]!.limit.algorithm, state);
    }
  }

  private commit(
    { counters, stored, state, allowed }: Slot,
    limit: CompiledLimit,
    cost: number,
    charges: boolean,
    now: number,
  ): StoreDecision {
    const { algorithm, parameters, quota } = limit;
    const charged = allowed && charges;
    if (charged) algorithm.take(parameters, state, cost);
    const reset = algorithm.resetAfter(parameters, state);
    const remaining = algorithm.remaining(parameters, state);
    const decision: StoreDecision = {
      allowed,
      limit: limit.name,
      quota,
      remaining: remaining < 0 ? 0 : remaining,
      retryAfterMs: allowed ? 0 : cost > quota ? Infinity : toMs(algorithm.retryAfter(parameters, state, cost)),
      resetAfterMs: toMs(reset),
      delayMs: 0,
      source: 'memory',
    };
    const lives = stored.expiresAt > now;
    const needed = algorithm.keepFor === undefined ? reset : algorithm.keepFor(parameters, state);
    const expiresAt = now + needed + this.slackMs * 1000;
    if (!charged) {
      counters.reuse(algorithm, state);
      if (!lives) return decision;
      // Other parameters may have given it less time than the rejection reports.
      if (expiresAt > stored.expiresAt) stored.expiresAt = expiresAt;
      this.table.touch(stored);
    } else if (needed <= 0) {
      this.table.delete(stored);
      counters.reuse(algorithm, state);
    } else {
      const before = stored.state;
      const saved = algorithm.save(parameters, state);
      stored.state = saved;
      stored.expiresAt = expiresAt;
      if (!lives || reset <= 0) stored.carried = undefined;
      // An earlier counter of the check may have grown and evicted this one.
      if (algorithm.bytes === undefined && stored.segment !== undefined) this.table.touch(stored);
      else this.table.keep(limit, stored);
      // The saved state may refer to the previously stored one.
      if (saved === state) counters.reuse(algorithm, before);
    }
    return decision;
  }
}

/** Returns true if only the algorithm decides checks of a limit. */
function isSimple(limit: CompiledLimit): boolean {
  const { algorithm, features = [] } = limit;
  if (limit.whole !== limit || limit.blockFor !== 0 || limit.carry !== undefined) return false;
  if (
    limit.adapts ||
    limit.varies ||
    limit.countsRefused ||
    limit.together !== undefined ||
    limit.estimates !== undefined
  )
    return false;
  if (features.some(({ memory }) => memory !== undefined)) return false;
  return !issuesTickets(algorithm) && algorithm.refuse === undefined;
}
