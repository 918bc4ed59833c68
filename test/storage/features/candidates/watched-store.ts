import type { Store } from '../../../../lib/index.js';
import type { Check, CompiledLimit, StoreDecision } from '../../../../lib/testing/store/index.js';
import { CandidateStore } from '../../../../lib/storage/features/candidates/candidates.js';
import { StoreLayer } from '../../../../lib/storage/stores/layers/store-layer.js';
import type { CheckAnswer } from '../../../../lib/storage/stores/store.js';

/** Keeps what the candidates of the last check or reservation said. */
class Watcher extends StoreLayer {
  last: StoreDecision[] = [];
  asked = 0;

  override decide(check: Check, answer: CheckAnswer): void {
    this.asked++;
    super.decide(check, {
      decided: (decisions) => {
        this.last = decisions.filter((_, index) => check.entries[index]!.limit.isCandidate);
        answer.decided(decisions);
      },
      failed: (error) => answer.failed(error),
    });
  }
}

/** A store with candidates, which tells what they said. */
export class WatchedStore extends CandidateStore {
  private readonly watcher: Watcher;

  constructor(store: Store) {
    const watcher = new Watcher(store);
    super(watcher);
    this.watcher = watcher;
  }

  /** What the candidates of the last check said, in the order of their limits. */
  get candidates(): StoreDecision[] {
    return this.watcher.last;
  }

  /** How often the store below was asked to decide. */
  get asked(): number {
    return this.watcher.asked;
  }

  /** What is left of a candidate. */
  async remaining({ candidate }: CompiledLimit, identity: string): Promise<number> {
    const entries = [{ limit: candidate!, identity, cost: 1 }];
    const [decisions] = await this.inner.check([{ entries, peek: true }]);
    return decisions![0]!.remaining;
  }
}
