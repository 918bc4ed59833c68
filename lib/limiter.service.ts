import { Inject, Injectable } from '@nestjs/common';
import { assertCost, assertKey } from './arguments.js';
import { toCheckResult } from './check-result.js';
import { RateLimitArgumentError } from './errors/errors.js';
import { messages } from './errors/messages.js';
import type { LimitDefinition } from './limit-definition.js';
import { Limiter } from './limiter.js';
import { LimitRegistry } from './plan/limit-registry.js';
import { withLease } from './lease.js';
import { WaitingRoom } from './waiting/waiting-room.js';
import { RATE_LIMIT_STORE } from './rate-limit.settings.js';
import type { CheckEntry, CheckResult, Store } from './stores/store.js';

const CHECK = { place: 'LimiterService.check', scope: '' };

/** One limit of a check made from code. */
export interface LimitCheck {
  /** The limit: its definition, the name of a defined one, or a `Limiter`. */
  limit: LimitDefinition | string | Limiter;
  /** Whom it counts, such as `user:42`: any string that is not empty. */
  key: string;
  /**
   * Units: a whole number >= 1.
   * @default the limit's own cost, or 1
   */
  cost?: number;
}

/** The same limits for any code that is not a route. Limits of one name share their counters, wherever they are used. */
@Injectable()
export class LimiterService {
  constructor(
    private readonly registry: LimitRegistry,
    private readonly room: WaitingRoom,
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
  ) {}

  /** The limiter of a limit, or of a defined limit's name. Throws `RateLimitConfigError`. */
  for(limit: LimitDefinition | string): Limiter {
    const rule = this.registry.rule(limit, { place: 'LimiterService.for', scope: '' });
    return new Limiter(rule.name, () => rule, this.store, this.room);
  }

  /** @internal The limiter of a name that is looked up when it is first used. */
  lazily(name: string): Limiter {
    const rule = () => this.registry.rule(name, { place: 'LimiterService.for', scope: '' });
    return new Limiter(name, rule, this.store, this.room);
  }

  /**
   * Takes units from several limits at once: from all of them, or, if one refuses, from none. Rejects with
   * `RateLimitArgumentError` if the list is empty, names one limit twice for one key, or holds a wrong cost or key.
   */
  async check(checks: readonly LimitCheck[]): Promise<CheckResult> {
    if (checks.length === 0) throw new RateLimitArgumentError(messages.emptyCheck());
    const entries = checks.map((each) => this.entry(each));
    const seen = new Set<string>();
    for (const { limit, identity } of entries) {
      const counter = `${limit.id}\n${identity}`;
      if (seen.has(counter)) throw new RateLimitArgumentError(messages.sameKeyTwice(limit.name, identity));
      seen.add(counter);
    }
    const [decisions = []] = await this.store.check([{ entries }]);
    const result = toCheckResult(
      decisions,
      entries.map(({ limit }) => limit),
    );
    if (!result.allowed) return result;
    const told = result.decisions.map((decision, index) => {
      const { limit, identity, cost } = entries[index]!;
      return withLease(decision, decisions[index]!, { limit, identity, units: cost }, this.store, this.room);
    });
    return { ...result, decisions: told };
  }

  private entry({ limit: given, key, cost }: LimitCheck): CheckEntry {
    const limiter = given instanceof Limiter ? given : undefined;
    const rule = limiter?.rule ?? this.registry.rule(given as LimitDefinition | string, CHECK);
    const units = cost ?? rule.fixedCost;
    assertKey(key);
    assertCost(units);
    return { limit: rule.limit, identity: key, cost: units };
  }
}
