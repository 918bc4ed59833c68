import type { Store } from '../../../lib/index.js';
import type { Check, StoreDecision } from '../../../lib/testing/store/index.js';
import { layerOf } from '../../../lib/storage/stores/layers/store-layer.js';
import type { CheckAnswer } from '../../../lib/storage/stores/store.js';

/** An answer that throws when it is told a decision, as one does whose telemetry fails. What it is told then goes into a list. */
export function failingAnswer(told: unknown[]): CheckAnswer {
  return {
    decided() {
      throw new Error('an exporter failed');
    },
    failed: (error) => told.push(error),
  };
}

/** Decides a check for an answer that throws, and tells what that is told then. */
export function decideForFailing(store: Store, check: Check): unknown[] {
  const told: unknown[] = [];
  layerOf(store).decide(check, failingAnswer(told));
  return told;
}

/** The decisions of a check, by the way that layers of a store take, which may be a shorter one than `check`. */
export function decidedBy(store: Store, check: Check): Promise<StoreDecision[]> {
  return layerOf(store).decided(check);
}
