import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { type Measure, measuredUnits } from '../../app/config/measured-cost.js';
import { Histogram } from './timeline.js';
import type { State } from '../../engine/algorithms/algorithm.js';
import { type Block, blockAt, endOf } from '../../storage/stores/memory/block.js';
import { beginBlock, prolongBlock, takeOver, View } from '../../storage/stores/memory/counter-view.js';
import { decisionOf, toMs } from '../../storage/stores/memory/evaluation.js';
import { AdmittedUnits } from './admitted-units.js';

/**
 * One limit's counter for one identity. It decides like `MemoryStore`, with the same functions. But it is found through its key, not
 * through a text created for each check, and its clock never goes back.
 */
export class SimulatedCounter {
  /** The units that it has admitted recently. */
  readonly admitted = new AdmittedUnits();
  private stored: State | undefined;
  /** The last block, as long as it still matters. */
  private block: Block | undefined;
  /** The state for the current check. */
  private state!: State;
  /** True if the units of the current check fit. */
  isAllowed = false;

  constructor(private readonly limit: CompiledLimit) {}

  look(cost: number, now: number): boolean {
    const { algorithm, parameters, quota } = this.limit;
    this.state = algorithm.open(parameters, this.stored, now);
    this.block &&= blockAt(this.limit, this.block, now);
    this.isAllowed = !this.isBlocked && cost <= quota && algorithm.fits(parameters, this.state, cost);
    return this.isAllowed;
  }

  /** Charges units that fit. Returns the delay of the request in milliseconds. */
  charge(cost: number): number {
    if (cost === 0) return 0;
    const { algorithm, parameters } = this.limit;
    const { state } = this;
    const delay = algorithm.queue === undefined ? 0 : toMs(algorithm.queue.delay(parameters, state, cost));
    algorithm.take(parameters, state, cost);
    this.stored = algorithm.save(parameters, state);
    return delay;
  }

  /** Charges an estimate that fits, then replaces it by the real cost, up to one quota beyond the quota. Returns the delay. */
  settle(estimate: number, actual: number): number {
    const delay = this.charge(Math.min(estimate, actual));
    if (actual <= estimate) return delay;
    const { algorithm, parameters, quota } = this.limit;
    const { state } = this;
    const more = Math.min(actual - estimate, quota + algorithm.remaining(parameters, state));
    algorithm.take(parameters, state, Math.max(0, more));
    this.stored = algorithm.save(parameters, state);
    return delay;
  }

  /** Ends a refused check without a charge. Returns the wait in milliseconds if this limit refused, or 0 if another one did. */
  refuse(cost: number): number {
    const { limit, state } = this;
    const { algorithm, parameters, quota } = limit;
    let retryAfterMs = 0;
    let isChanged = state.migrated && cost > 0;
    // A cost of 0 begins no block.
    if (!this.isAllowed && ((limit.blockFor > 0 && cost > 0) || this.isBlocked)) {
      const view = this.view(cost);
      if (view.block === undefined) {
        beginBlock(view);
        this.block = view.block;
        isChanged = true;
      } else if (limit.strikes && cost > 0 && prolongBlock(view)) this.block = view.block;
      retryAfterMs = decisionOf(view, 0).retryAfterMs;
    } else if (!this.isAllowed) {
      retryAfterMs = cost > quota ? Infinity : toMs(algorithm.retryAfter(parameters, state, cost));
    }
    if (isChanged) this.stored = algorithm.save(parameters, state);
    return retryAfterMs;
  }

  isCounting(now: number): boolean {
    const { algorithm, parameters } = this.limit;
    if (this.block !== undefined && endOf(this.limit, this.block) > now) return true;
    if (this.stored === undefined) return false;
    return algorithm.resetAfter(parameters, algorithm.open(parameters, this.stored, now)) > 0;
  }

  /** The estimated bytes of its lists. */
  get listedBytes(): number {
    return this.stored === undefined ? 0 : (this.limit.algorithm.bytes?.(this.stored) ?? 0);
  }

  private get isBlocked(): boolean {
    return this.block !== undefined && this.block.duration > 0;
  }

  private view(cost: number): View {
    const view = new View();
    view.limit = this.limit;
    view.state = this.state;
    if (this.block !== undefined) takeOver(view, this.block, this.state.now);
    view.cost = cost;
    view.allowed = this.isAllowed;
    return view;
  }
}

interface RequestUnits {
  readonly cost: number;
  readonly bytes?: number;
}

/** The period of a limit's length in which one counter admitted most. */
export interface Stretch {
  units: number;
  identity: string;
  /** The time of its first and of its last units, in microseconds. */
  from: number;
  to: number;
}

export class SimulatedLimit {
  refused = 0;
  /** The number of those that it can never allow because of their cost. */
  never = 0;
  /** The waits that it reported for the others. */
  readonly waits = new Histogram();
  readonly delays = new Histogram();
  worst: Stretch | undefined;
  /** True if the worst period is exact; otherwise, it is a lower bound. */
  isExact = true;
  /** Its length: that of the window at the first request. */
  lengthMs = 0;

  constructor(
    readonly limit: CompiledLimit,
    /** As written on the command line. */
    readonly spec: string,
    /** The index of its key among those of a request. */
    readonly source: number,
    /** The index of this limit among those with that key. */
    readonly place: number,
    /** How it charges the bytes of responses, if it does. */
    private readonly measure?: Measure,
  ) {}

  /** The units that a request has to fit with. */
  askedOf({ cost, bytes }: RequestUnits): number {
    return this.measure === undefined || bytes === undefined ? cost : this.measure.estimate;
  }

  /** The units that a request is charged in the end. */
  chargedOf({ cost, bytes }: RequestUnits): number {
    return this.measure === undefined || bytes === undefined ? cost : measuredUnits(this.measure, { bytes })!;
  }

  refuse(retryAfterMs: number): void {
    this.refused++;
    if (retryAfterMs === Infinity) this.never++;
    else this.waits.add(retryAfterMs);
  }

  admit({ admitted }: SimulatedCounter, identity: string, cost: number, time: number, delayMs: number): void {
    this.lengthMs ||= this.limit.windowMs(time / 1000);
    const units = admitted.add(time, cost, this.lengthMs * 1000);
    if (!admitted.isExact) this.isExact = false;
    if (this.worst === undefined || units > this.worst.units) {
      this.worst = { units, identity, from: admitted.start, to: time };
    }
    if (this.limit.algorithm.queue !== undefined) this.delays.add(delayMs);
  }
}
