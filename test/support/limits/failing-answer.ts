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
