import type { ExecutionContext } from '@nestjs/common';
import type { BoundKey } from '../../key-resolvers/key-resolver.factory.js';
import { assertCost } from '../../limits/arguments.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { assertPriority, type Priority } from '../../limits/priority.js';
import type { RequestParts } from '../../transports/request-reader.js';
import { andThen, type Awaitable } from '../../util/awaitable.js';
import type { Rule } from '../rule.js';
import { identityOfKey, identityWithoutKey } from './identity.js';

/** The input from a request that may differ between levels of a hierarchy. */
export interface LevelInput {
  /** Whether the rule does not count the request. */
  skips(rule: Rule): Awaitable<boolean>;
  /**
   * The identity of the request; `undefined` if the limit does not apply. `counts`: whether the rule itself counts the request.
   * If it does not, a missing key is no reason to refuse the request, but what is within the limit still has one counter.
   */
  identity(rule: Rule, counts?: boolean): Awaitable<string | undefined>;
  cost(rule: Rule): Awaitable<number>;
}

/** Reads a request, and calls the functions of limits with it. Checks what they return. */
export class RequestInput implements LevelInput {
  constructor(
    protected readonly context: ExecutionContext,
    protected readonly parts: RequestParts,
    /** The rules that are checked together: after the guards if one of them is, whatever the others say. */
    private readonly rules: readonly Rule[] = [],
  ) {}

  skips({ settings: { skip } }: Rule): Awaitable<boolean> {
    return skip?.(this.context) ?? false;
  }

  identity(rule: Rule, counts = true): Awaitable<string | undefined> {
    const { key, onMissingKey } = rule.settings;
    return this.identityBy(rule, key, counts || onMissingKey !== 'refuse');
  }

  /** The version of a limit by the request's trait; `undefined` if it has no key that it needs. */
  version(rule: Rule, limit: CompiledLimit): Awaitable<CompiledLimit | undefined> {
    const { trait } = rule.settings;
    if (trait === undefined) return limit;
    const { by } = trait;
    const found = typeof by === 'function' ? andThen(by(this.context), orNull) : this.identityBy(rule, by);
    return andThen(found, (said) => (said === undefined ? undefined : limit.meet(trait.metBy(said, limit))));
  }

  priority({ settings: { priority } }: Rule): Awaitable<Priority | undefined> {
    if (typeof priority !== 'function') return priority;
    return andThen(priority(this.context), (found) => {
      assertPriority(found);
      return found;
    });
  }

  cost({ settings: { cost } }: Rule): Awaitable<number> {
    if (typeof cost === 'number') return cost;
    return andThen(cost(this.context), (units) => {
      assertCost(units);
      return units;
    });
  }

  /** The identity of a request without a key; `undefined` if the limit does not apply. Throws the refusal of the request. */
  protected withoutKey(rule: Rule, by: BoundKey): string | undefined {
    const phase = this.rules.some((each) => each.phase === 'authenticated') ? 'authenticated' : undefined;
    return identityWithoutKey(rule, by, this.context, this.parts, phase);
  }

  private identityBy(rule: Rule, by: BoundKey, mayRefuse = true): Awaitable<string | undefined> {
    return andThen(
      by.identify(this.context, this.parts),
      (key) => identityOfKey(rule, key) ?? (mayRefuse ? this.withoutKey(rule, by) : undefined),
    );
  }
}

function orNull(found: unknown): unknown {
  return found ?? null;
}
