import type { WindowCount } from './algorithms/algorithm.js';
import { assertCost, assertHistory, assertKey } from './arguments.js';
import { toDecision } from './check-result.js';
import { RateLimitArgumentError } from './errors/errors.js';
import { messages } from './errors/messages.js';
import type { Rule } from './plan/rule.js';
import type { Counter, Decision, Store, StoreDecision } from './stores/store.js';

/**
 * One limit, for any code: made by `LimiterService.for` or injected with `@InjectLimiter`. A key says whom to count, such as
 * `user:42`; it is any string that is not empty. A wrong key or cost rejects with `RateLimitArgumentError`, a failing store
 * with `RateLimitStoreError`.
 */
export class Limiter {
  private bound: Rule | undefined;

  /** @internal */
  constructor(
    /** The limit's name. */
    readonly name: string,
    private readonly bind: () => Rule,
    private readonly store: Store,
  ) {}

  /** @internal */
  get rule(): Rule {
    return (this.bound ??= this.bind());
  }

  /** Takes `cost` units if they fit. A refusal is a decision, not an error. */
  consume(key: string, cost?: number): Promise<Decision> {
    return this.decide(key, cost, false);
  }

  /** Says what `consume` would; takes and writes nothing. */
  peek(key: string, cost?: number): Promise<Decision> {
    return this.decide(key, cost, true);
  }

  /** Forgets what was counted for a key. */
  async reset(key: string): Promise<void> {
    await this.store.reset([this.counter(key)]);
  }

  /** The newest `windows` of a `calendar-window` that can still be read, the newest first; all unless given. */
  async history(key: string, windows?: number): Promise<WindowCount[]> {
    const counter = this.counter(key);
    if (windows !== undefined) assertHistory(windows);
    if (counter.limit.algorithm.history === undefined) {
      throw new RateLimitArgumentError(messages.noHistory(this.name));
    }
    const all = await this.store.history(counter);
    return all.slice(0, windows);
  }

  private async decide(key: string, cost: number = this.rule.fixedCost, peek: boolean): Promise<Decision> {
    const counter = this.counter(key);
    assertCost(cost);
    const [decisions] = await this.store.check([{ entries: [{ ...counter, cost }], peek }]);
    return toDecision(decisions?.[0] as StoreDecision);
  }

  private counter(key: string): Counter {
    assertKey(key);
    return { limit: this.rule.limit, identity: key };
  }
}
