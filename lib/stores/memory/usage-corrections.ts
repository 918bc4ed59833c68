import type { CompiledLimit } from '../../limits/compiled-limit.js';

/** A change of what a counter was charged: what was charged at a time, in microseconds, or somewhen. */
export interface Correction {
  readonly difference: number;
  readonly chargedAt: number | undefined;
}

/** What is noted at the view of a counter. */
interface View {
  readonly limit: CompiledLimit;
  corrections: Correction[] | undefined;
}

/** Notes a change of what a counter was charged before, if that is recorded: it is made when the counter is stored. */
export function noteCorrection(view: View, difference: number, chargedAt: number | undefined): void {
  if (view.limit.usage === undefined || difference === 0) return;
  (view.corrections ??= []).push({ difference, chargedAt });
}
