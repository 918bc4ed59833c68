import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { StoreDecision } from '../../storage/stores/store.js';

/** How many units the queue of a limit is likely to have places for. Other processes may have taken some meanwhile. */
export class PlacesLeft {
  private last = 0;
  /** In milliseconds of the monotonic clock. */
  private at = 0;

  /** Notes an answer of the limit. */
  note({ remaining }: StoreDecision): void {
    this.last = remaining;
    this.at = performance.now();
  }

  /** The places left now, at least one: units have left since the last answer. */
  now({ algorithm, parameters }: CompiledLimit): number {
    const passedMs = performance.now() - this.at;
    return Math.max(1, this.last + Math.floor((passedMs * 1000) / algorithm.queue!.spacing(parameters)));
  }
}
