import type { Store } from '../../../lib/index.js';
import type { ManualClock } from '../../support/limits/stores.js';
import { holdsOfChangedWindows } from './holds/changed-windows.js';
import { holdsOfEachAlgorithm } from './holds/each-algorithm.js';
import { holdsOfSeveral } from './holds/several.js';
import { holdsStage } from './holds/stage.js';

/** What every store does with units that are held until they are settled. */
export function holdsContract(make: (clock: ManualClock) => Store): void {
  const stage = holdsStage(make);
  holdsOfEachAlgorithm(stage);
  holdsOfChangedWindows(stage);
  holdsOfSeveral(stage);
}
