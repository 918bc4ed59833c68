import { isOfStarts } from '../../../engine/limits/counter.js';
import type { OpenCounter } from '../../../engine/limits/estimates.js';
import type { KeptInMemory, MemoryBounds } from '../../../engine/limits/limit-feature.js';
import type { View } from './counter-view.js';

/** Records the correction of an earlier charge. The features of the limit get it when the counter is stored. */
export function noteCorrection(view: OpenCounter, difference: number, chargedAt: number | undefined): void {
  if (view.limit.features === undefined || difference === 0) return;
  (view.corrections ??= []).push({ difference, chargedAt });
}

/** The data that a store keeps for the features of its limits, and the hooks of these features. */
export class KeptByFeatures {
  private readonly kept = new Map<(bounds: MemoryBounds) => KeptInMemory, KeptInMemory>();
  /** The last key of the lookup. Looking it up again would take longer than the rest of a charge. */
  private lastKeep: ((bounds: MemoryBounds) => KeptInMemory) | undefined;
  private last: KeptInMemory | undefined;

  constructor(private readonly bounds: MemoryBounds) {}

  /** The data of all limits of a feature. */
  of<Kept extends KeptInMemory>(keep: (bounds: MemoryBounds) => Kept): Kept {
    if (keep === this.lastKeep) return this.last as Kept;
    let kept = this.kept.get(keep);
    if (kept === undefined) this.kept.set(keep, (kept = keep(this.bounds)));
    this.lastKeep = keep;
    this.last = kept;
    return kept as Kept;
  }

  /** Called when a counter is charged, after the corrections recorded before. */
  charged(view: View, units: number, now: number): void {
    const { features } = view.limit;
    if (features === undefined || units === 0 || isOfStarts(view)) return;
    if (view.corrections !== undefined) this.stored(view, now);
    for (let i = 0; i < features.length; i++) {
      const { memory } = features[i]!;
      if (memory !== undefined) memory.charged(this.of(memory.keep), view.identity, units, now);
    }
  }

  /** Called when a counter is stored. */
  stored(view: View, now: number): void {
    const { corrections, limit, identity } = view;
    if (corrections === undefined) return;
    view.corrections = undefined;
    for (const { memory } of limit.features!) {
      if (memory === undefined) continue;
      for (const correction of corrections) memory.corrected(this.of(memory.keep), identity, correction, now);
    }
  }

  /** Deletes all data. */
  clear(): void {
    for (const kept of this.kept.values()) kept.clear();
  }
}
