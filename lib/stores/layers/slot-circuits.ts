import type { RateLimitStoreError } from '../../errors/errors.js';
import type { Counter } from '../../limits/counter.js';
import { Circuit, type CircuitReport } from './circuit.js';

/** A change of a part of a node that moves by itself. */
export type SlotReport = CircuitReport & { readonly node: string; readonly slot: number };

/** A reshard moves thousands of slots, one after the other: of those that fail within so many milliseconds one is reported. */
const REPORT_AFTER_MS = 10_000;
/** A slot that nobody has asked for since is forgotten. */
const FORGET_AFTER_MS = 60_000;

/** The circuits of slots that fail while they are being moved: the nodes that have them are asked for all others. */
export class SlotCircuits {
  private readonly circuits = new Map<number, { readonly circuit: Circuit; failedAt: number }>();
  private reportedAt = -Infinity;

  constructor(
    private readonly slotOf: (counter: Counter) => number,
    private readonly report: (report: SlotReport) => void,
  ) {}

  /** Whether all slots are well: then nothing is to be guarded. */
  get isEmpty(): boolean {
    if (this.circuits.size > 0) this.forgetOld(performance.now());
    return this.circuits.size === 0;
  }

  /** Puts the circuits of the counters' slots around a call. */
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

  /** A call failed because of a slot. */
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
