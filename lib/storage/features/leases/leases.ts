import type { Feature } from '../feature.js';
import { heldNow, type HoldersKept } from '../held-now.js';

/** `lua/algorithms/concurrency.lua` documents the stored data. */
const LEASES: HoldersKept = {
  name: 'leases',
  inMemory: ({ limit, state }) => limit.algorithm.leases!.running!(state),
  key: (counterKey) => counterKey,
};

/** Lists the holders of a limit's units. */
export const leases: Feature = {
  explained: (store, counter) =>
    counter.limit.algorithm.leases?.running === undefined
      ? undefined
      : heldNow(store, counter, LEASES).then((found) => found && { leases: found }),
};
