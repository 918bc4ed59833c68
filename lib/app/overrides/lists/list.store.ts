import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { isRefusal } from '../../../engine/limits/decision.js';
import { PartlyKnownAnswer, report } from '../../../storage/stores/decide.js';
import { StoreLayer } from '../../../storage/stores/layers/store-layer.js';
import type { Operation, OperationAnswer, OperationCounter, OperationName } from '../../../storage/stores/operation.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../../../storage/stores/store.js';
import { openDecision } from '../../../storage/stores/store-decision.js';
import type { ListVerdicts } from './lists.js';

/** Decides for clients on a list, and calls the inner store for all others. */
export class ListStore extends StoreLayer {
  constructor(
    inner: Store,
    private readonly lists: ListVerdicts,
  ) {
    super(inner);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (!this.lists.isEmpty && this.concerns(check)) this.decideListed(check, answer);
    else this.inner.decide(check, answer);
  }

  /** Calls that a list let pass were not charged, so there is nothing to operate on. */
  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const all: readonly OperationCounter[] = operation.counters;
    if (!all.some(isOfList)) return super.operate(operation);
    const counters = all.filter((counter) => !isOfList(counter));
    return counters.length === 0 ? undefined : super.operate({ ...operation, counters });
  }

  /** Returns true if a list decides any part of a check. */
  private concerns({ entries, address }: Check): boolean {
    for (const { limit, identity } of entries) {
      if (this.lists.verdict(limit, identity, address) !== undefined) return true;
    }
    return false;
  }

  private decideListed(check: Check, answer: CheckAnswer): void {
    const { entries, address } = check;
    const known = entries.map(({ limit, identity }) => {
      const verdict = this.lists.verdict(limit, identity, address);
      return verdict && listed(limit, verdict);
    });
    // If a limit rejects, the remaining ones aren't checked.
    const isRefused = entries.some(({ limit }, index) => known[index] && isRefusal(limit, known[index]));
    const rest = entries.filter((_, index) => known[index] === undefined);
    if (isRefused || rest.length === 0) {
      report(
        answer,
        entries.map(({ limit }, index) => known[index] ?? listed(limit, 'allow')),
      );
    } else this.inner.decide({ ...check, entries: rest }, new PartlyKnownAnswer(known, answer));
  }
}

/** The decision of a list in place of a limit. A denial lasts until the list is changed. */
function listed(limit: CompiledLimit, verdict: 'allow' | 'deny'): StoreDecision {
  const open: StoreDecision = { ...openDecision(limit), source: 'list' };
  return verdict === 'allow' ? open : { ...open, allowed: false, remaining: 0, retryAfterMs: Infinity };
}

function isOfList({ source }: OperationCounter): boolean {
  return source === 'list';
}
