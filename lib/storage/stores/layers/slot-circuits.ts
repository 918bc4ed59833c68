import type { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { Circuit, type CircuitReport } from './circuit.js';

/** A change of a part of a node that moves by itself. */
export type SlotReport = CircuitReport & { readonly node: string; readonly slot: number };

/** A reshard moves thousands of slots one after another: of those that fail within this time, one is reported. */
const REPORT_AFTER_MS = 10_000;
/** A slot is forgotten if nobody has asked for it for this long. */
const FORGET_AFTER_MS = 60_000;

/** The circuits of slots that fail while they move: their nodes are still asked about all other slots. */
export class SlotCircuits {
  private readonly circuits = new Map<number, { readonly circuit: Circuit; failedAt: number }>();
  private reportedAt = -Infinity;

  constructor(
    private readonly slotOf: (counter: Counter) => number,
    private readonly report: (report: SlotReport) => void,
  ) {}

  /** Whether no slot fails, so that nothing needs guarding. */
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

  /** Notes a call that failed because of a slot. */
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
