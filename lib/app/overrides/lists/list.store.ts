import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { isRefusal } from '../../../engine/limits/check-result.js';
import { report } from '../../../storage/stores/decide.js';
import { PartlyKnownAnswer } from '../../../storage/stores/enforced-entries.js';
import { StoreLayer } from '../../../storage/stores/layers/store-layer.js';
import type { Operation, OperationAnswer, OperationCounter, OperationName } from '../../../storage/stores/operation.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../../../storage/stores/store.js';
import { openDecision } from '../../../storage/stores/store-decision.js';
import type { ListVerdicts } from './lists.js';

/** Answers for those who are on a list, and asks the inner store about all others. */
export class ListStore extends StoreLayer {
  constructor(
    inner: Store,
    private readonly lists: ListVerdicts,
  ) {
    super(inner);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (!this.lists.isEmpty && this.concerns(check)) this.decideListed(check, answer);
    else this.below.decide(check, answer);
  }

  /** What a list let pass was not charged. */
  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const all: readonly OperationCounter[] = operation.counters;
    if (!all.some(isOfList)) return super.operate(operation);
    const counters = all.filter((counter) => !isOfList(counter));
    return counters.length === 0 ? undefined : super.operate({ ...operation, counters });
  }

  /** Whether a list has a verdict on a check. */
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
    // If one limit refuses, the others are not asked.
    const isRefused = entries.some(({ limit }, index) => known[index] && isRefusal(limit, known[index]));
    const rest = entries.filter((_, index) => known[index] === undefined);
    if (isRefused || rest.length === 0) {
      report(
        answer,
        entries.map(({ limit }, index) => known[index] ?? listed(limit, 'allow')),
      );
    } else this.below.decide({ ...check, entries: rest }, new PartlyKnownAnswer(known, answer));
  }
}

/** The decision of a list in place of a limit. A refusal lasts until somebody changes the list. */
function listed(limit: CompiledLimit, verdict: 'allow' | 'deny'): StoreDecision {
  const open: StoreDecision = { ...openDecision(limit), source: 'list' };
  return verdict === 'allow' ? open : { ...open, allowed: false, remaining: 0, retryAfterMs: Infinity };
}

function isOfList({ source }: OperationCounter): boolean {
  return source === 'list';
}
