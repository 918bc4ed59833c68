import type { Store } from '../../../lib/index.js';
import type { ManualClock } from '../../support/limits/stores.js';
import { reserveContract } from './operations/reserve.js';
import { refundContract } from './operations/refund.js';
import { penalizeContract } from './operations/penalize.js';
import { learnContract } from './operations/learn.js';
import { learnWindowContract } from './operations/learn-window.js';
import { learnRateContract } from './operations/learn-rate.js';
import { blockContract } from './operations/block.js';
import { blockForContract } from './operations/block-for.js';
import { escalatingBlocksContract } from './operations/escalating-blocks.js';
import { strikesContract } from './operations/strikes.js';
import { slicesContract } from './operations/slices.js';
import { anyHistoryContract } from './operations/any-history.js';
import { operationsStage } from './operations/stage.js';

/** All that every store has to do besides checks, and that it learns, if it does. `make` makes one that asks the clock for the time. */
export function operationsContract(make: (clock: ManualClock) => Store, { learns = true } = {}): void {
  const stage = operationsStage(make);
  reserveContract(stage);
  refundContract(stage);
  penalizeContract(stage);
  blockContract(stage);
  if (learns) {
    learnContract(stage);
    learnWindowContract(stage);
    learnRateContract(stage);
  }
  blockForContract(stage);
  escalatingBlocksContract(stage);
  strikesContract(stage);
  slicesContract(stage);
  anyHistoryContract(stage);
}
