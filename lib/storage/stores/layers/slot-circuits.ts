import type { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { Circuit, type CircuitReport } from './circuit.js';

/** A change of state of a slot that fails while it moves. */
export type SlotReport = CircuitReport & { readonly node: string; readonly slot: number };

/** A reshard moves thousands of slots one after another. Of the slots that fail within this time, only one is reported. */
const REPORT_AFTER_MS = 10_000;
/** A slot is forgotten after this long without a call. */
const FORGET_AFTER_MS = 60_000;

/** The circuits of slots that fail while they move. Their nodes are still used for all other slots. */
export class SlotCircuits {
  private readonly circuits = new Map<number, { readonly circuit: Circuit; failedAt: number }>();
  private reportedAt = -Infinity;

  constructor(
    private readonly slotOf: (counter: Counter) => number,
    private readonly report: (report: SlotReport) => void,
  ) {}

  /** True while all slots are healthy. */
  get isEmpty(): boolean {
    if (this.circuits.size > 0) this.forgetOld(performance.now());
    return this.circuits.size === 0;
  }

  /** Wraps a call in the circuits of the counters' slots. */
  guard<T>(counters: readonly Counter[], call: () => Promise<T>): () => Promise<T> {
    let guarded = call;
    for (const slot of new Set(counters.map(this.slotOf))) {
      const known = this.circuits.get(slot);
      if (known === undefined) continue;
      const next = guarded;
      guarded = async () => {
        const answer = await known.circuit.run(next);
        if (!known.circuit.isFailing) this.circuits.delete(slot);
        return answer;
      };
    }
    return guarded;
  }

  /** Records a call that failed because of its slot. */
  failed(error: RateLimitStoreError, node: string, slot: number): void {
    const now = performance.now();
    const known = this.circuits.get(slot);
    if (known !== undefined) {
      known.failedAt = now;
      return;
    }
    this.forgetOld(now);
    const isReported = now - this.reportedAt >= REPORT_AFTER_MS;
    if (isReported) this.reportedAt = now;
    const report = isReported ? (news: CircuitReport) => this.report({ ...news, node, slot }) : () => undefined;
    const circuit = new Circuit(node, report, slot);
    this.circuits.set(slot, { circuit, failedAt: now });
    circuit.failed(error);
  }

  private forgetOld(now: number): void {
    for (const [slot, { failedAt }] of this.circuits) if (now - failedAt > FORGET_AFTER_MS) this.circuits.delete(slot);
  }
}
