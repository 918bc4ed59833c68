import type { Store } from '../../../lib/index.js';
import type { ManualClock } from '../../support/limits/stores.js';
import { workedExamplesContract } from './checks/worked-examples.js';
import { everyAlgorithmContract } from './checks/every-algorithm.js';
import { severalLimitsContract } from './checks/several-limits.js';
import { identitiesContract } from './checks/identities.js';
import { queueTicketsContract } from './checks/queue-tickets.js';
import { clockStepsContract } from './checks/clock-steps.js';
import { fractionsContract } from './checks/fractions.js';
import { changedParametersContract } from './checks/changed-parameters.js';
import { calendarContract } from './checks/calendar.js';
import { looksContract } from './checks/looks.js';
import { checkStage } from './checks/stage.js';

/** All that every check of every store has to do. `make` makes one that asks the clock for the time. */
export function storeContract(make: (clock: ManualClock) => Store): void {
  const stage = checkStage(make);
  workedExamplesContract(stage);
  everyAlgorithmContract(stage);
  severalLimitsContract(stage);
  identitiesContract(stage);
  queueTicketsContract(stage);
  clockStepsContract(stage);
  fractionsContract(stage);
  changedParametersContract(stage);
  calendarContract(stage);
  looksContract(stage);
}
