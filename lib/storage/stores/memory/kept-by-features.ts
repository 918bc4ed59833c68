import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { isOfStarts } from '../../../engine/limits/counter.js';
import type { Correction } from '../../../engine/limits/estimates.js';
import type { KeptInMemory, MemoryBounds } from '../../../engine/limits/limit-feature.js';

/** A counter of which changes are noted. */
interface ChangedCounter {
  readonly limit: { readonly features: readonly object[] | undefined };
  corrections: Correction[] | undefined;
}

/** What is noted at the view of a counter. */
interface View extends ChangedCounter {
  readonly limit: CompiledLimit;
  readonly identity: string;
}

/** Notes a change of what a counter was charged before: its limit's features are called with it when the counter is stored. */
export function noteCorrection(view: ChangedCounter, difference: number, chargedAt: number | undefined): void {
  if (view.limit.features === undefined || difference === 0) return;
  (view.corrections ??= []).push({ difference, chargedAt });
}

/** What a store keeps for the features of its limits, and their hooks. */
export class KeptByFeatures {
  private readonly kept = new Map<(bounds: MemoryBounds) => KeptInMemory, KeptInMemory>();
  /** What was asked for last: to look it up takes longer than the rest of a charge. */
  private lastKeep: ((bounds: MemoryBounds) => KeptInMemory) | undefined;
  private last: KeptInMemory | undefined;

  constructor(private readonly bounds: MemoryBounds) {}

  /** What is kept for all limits of a feature. */
  of<Kept extends KeptInMemory>(keep: (bounds: MemoryBounds) => Kept): Kept {
    if (keep === this.lastKeep) return this.last as Kept;
    let kept = this.kept.get(keep);
    if (kept === undefined) this.kept.set(keep, (kept = keep(this.bounds)));
    this.lastKeep = keep;
    this.last = kept;
    return kept as Kept;
  }

  /** A counter is charged, behind what was noted of it before. */
  charged(view: View, units: number, now: number): void {
    const { features } = view.limit;
    if (features === undefined || units === 0 || isOfStarts(view)) return;
    if (view.corrections !== undefined) this.stored(view, now);
    for (let i = 0; i < features.length; i++) {
      const { memory } = features[i]!;
      if (memory !== undefined) memory.charged(this.of(memory.keep), view.identity, units, now);
    }
  }

  /** A counter is stored. */
  stored(view: View, now: number): void {
    const { corrections, limit, identity } = view;
    if (corrections === undefined) return;
    view.corrections = undefined;
    for (const { memory } of limit.features!) {
      if (memory === undefined) continue;
      for (const correction of corrections) memory.corrected(this.of(memory.keep), identity, correction, now);
    }
  }

  /** Forgets all. */
  clear(): void {
    for (const kept of this.kept.values()) kept.clear();
  }
}
