import { AdmittedUnits } from '../../lib/cli/simulate/admitted-units.js';

/** The stretch of one interval in which most units passed. */
export interface Stretch {
  /** How many passed. */
  readonly units: number;
  /** When the first of them passed, in microseconds. */
  readonly from: number;
  /** When the last of them passed: less than an interval later. */
  readonly to: number;
}

/** Finds the first stretch of an interval in which most units passed, of the times at which each did; nothing if none did. */
export function worstStretch(times: readonly number[], interval: number): Stretch | undefined {
  const admitted = new AdmittedUnits();
  let worst: Stretch | undefined;
  for (const time of times.toSorted((one, other) => one - other)) {
    const units = admitted.add(time, 1, interval);
    if (worst === undefined || units > worst.units) worst = { units, from: admitted.start, to: time };
  }
  return worst;
}
