import type { Feature } from '../feature.js';
import { heldNow, type HoldersKept } from '../held-now.js';

/** `lua/algorithms/concurrency.lua` documents what is stored. */
const LEASES: HoldersKept = {
  name: 'leases',
  inMemory: ({ limit, state }) => limit.algorithm.leases!.running!(state),
  key: (counterKey) => counterKey,
};

/** Shows who holds units of a limit until they are released. */
export const leases: Feature = {
  explained: (store, counter) =>
    counter.limit.algorithm.leases?.running === undefined
      ? undefined
      : heldNow(store, counter, LEASES).then((found) => found && { leases: found }),
};
