import { type ExecutionContext, HttpException } from '@nestjs/common';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { reasonOf } from '../../../engine/errors/reasons.js';
import { assertCost, assertPriority, type Priority } from '../../../engine/limits/arguments.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { ResolvedKey } from '../../../engine/limits/identity.js';
import { andThen, type Awaitable, isPromise, mapAll } from '../../../engine/util/awaitable.js';
import type { Phase } from '../../config/common-limit-options.js';
import type { BoundKey } from '../../key-resolvers/key-resolver.factory.js';
import type { RequestParts } from '../../transports/request-reader.js';
import type { Rule } from '../rule.js';
import { identityOfKey, identityWithoutKey, isMadeOfNothing, routeText, warnOfKeyOfNothing } from './identity.js';

/** The values of a request that may differ between levels of a hierarchy. */
export interface LevelInput {
  /** Returns true if the rule does not count the request. */
  skips(rule: Rule): Awaitable<boolean>;
  /**
   * The identity of the request; `undefined` if the limit does not apply. With `counts` set to false, the rule itself does not count the
   * request: a missing key is then no reason to reject it, and the levels below still share one counter.
   */
  identity(rule: Rule, counts?: boolean): Awaitable<string | undefined>;
  cost(rule: Rule): Awaitable<number>;
}

/** Reads a request, calls the functions of limits with it, and checks their results. */
export class RequestInput implements LevelInput {
  constructor(
    protected readonly context: ExecutionContext,
    protected readonly parts: RequestParts,
    /** The rules that are checked together. If one of them is checked after the guards, all of them are. */
    private readonly rules: readonly Rule[] = [],
  ) {}

  skips(rule: Rule): Awaitable<boolean> {
    const { skip } = rule.settings.options;
    return skip === undefined ? false : this.found(rule, 'skip', skip, orFalse);
  }

  identity(rule: Rule, counts = true): Awaitable<string | undefined> {
    const { key, onMissingKey } = rule.settings;
    return this.identityBy(rule, key, counts || onMissingKey !== 'refuse');
  }

  /** The limit's version for the request's trait; `undefined` if a key that it needs is missing. */
  version(rule: Rule, limit: CompiledLimit): Awaitable<CompiledLimit | undefined> {
    const { trait } = rule.settings;
    if (trait === undefined) return limit;
    const { by } = trait;
    const found = typeof by === 'function' ? this.found(rule, trait.option, by, orNull) : this.identityBy(rule, by);
    return andThen(found, (said) => (said === undefined ? undefined : limit.meet(trait.metBy(said, limit))));
  }

  priority(rule: Rule): Awaitable<Priority | undefined> {
    const { priority } = rule.settings;
    return typeof priority === 'function' ? this.found(rule, 'priority', priority, checkedPriority) : priority;
  }

  cost(rule: Rule): Awaitable<number> {
    const { cost } = rule.settings;
    return typeof cost === 'number' ? cost : this.found(rule, 'cost', cost, checkedCost);
  }

  /** The identity of a request without a key; `undefined` if the limit does not apply. Throws if the request is rejected. */
  protected withoutKey(rule: Rule, by: BoundKey): string | undefined {
    return identityWithoutKey(rule, by, this.context, this.parts, this.phaseOf(rule));
  }

  private identityBy(rule: Rule, by: BoundKey, mayRefuse = true): Awaitable<string | undefined> {
    const option = by === rule.settings.key ? 'key' : 'share.by';
    const read = (key: ResolvedKey) => {
      const identity = identityOfKey(rule, key);
      if (identity === undefined) return mayRefuse ? this.withoutKey(rule, by) : undefined;
      if (typeof by.given === 'function' && isMadeOfNothing(identity)) {
        warnOfKeyOfNothing(rule, option, identity, this.context, this.phaseOf(rule));
      }
      return identity;
    };
    let key: Awaitable<ResolvedKey>;
    try {
      key = by.identify(this.context, this.parts);
    } catch (error) {
      throw this.reported(rule, option, error);
    }
    return isPromise(key) ? this.later(rule, option, key, read) : read(key);
  }

  /** Calls a function of a limit, and reads its result. If it fails, the log names the limit and the option. */
  private found<T, R>(
    rule: Rule,
    option: string,
    find: (context: ExecutionContext) => Awaitable<T>,
    read: (found: T) => R,
  ): Awaitable<R> {
    let found: Awaitable<T>;
    try {
      found = find(this.context);
    } catch (error) {
      throw this.reported(rule, option, error);
    }
    return isPromise(found) ? this.later(rule, option, found, read) : read(found);
  }

  private later<T, R>(rule: Rule, option: string, found: Promise<T>, read: (found: T) => R): Promise<R> {
    // The `then` of a thenable may return anything, even something that isn't a promise.
    return Promise.resolve(found).then(read, (error: unknown) => {
      throw this.reported(rule, option, error);
    });
  }

  /** HTTP errors are thrown on purpose, and the library's own errors are clear enough. Others are logged once. None is changed. */
  protected reported(rule: Rule, option: string, error: unknown): unknown {
    if (error instanceof HttpException || error instanceof RateLimitConfigError) return error;
    const phase = this.phaseOf(rule);
    const user = this.parts.request?.user ?? undefined;
    const isBeforeUser = phase !== 'authenticated' && user === undefined;
    rule.settings.log.error(
      messages.functionFailed(rule.name, routeText(this.context), option, phase, isBeforeUser),
      error instanceof Error ? error.stack : reasonOf(error),
    );
    return error;
  }

  private phaseOf({ settings }: Rule): Phase {
    return this.rules.some((each) => each.phase === 'authenticated') ? 'authenticated' : settings.phase;
  }
}

function orFalse(found: boolean | undefined): boolean {
  return found ?? false;
}

function orNull(found: unknown): unknown {
  return found ?? null;
}

function checkedPriority(found: Priority): Priority {
  assertPriority(found);
  return found;
}

function checkedCost(units: number): number {
  assertCost(units);
  return units;
}

/**
 * The input of rules with parents or children. Each level determines for itself if it counts the request, but the identity of every level
 * is always determined. Calls each function of a limit once.
 */
export class LeveledInput implements LevelInput {
  private readonly skipped = new Map<Rule, Awaitable<boolean>>();
  private readonly identities = new Map<Rule, Awaitable<string | undefined>>();
  private readonly costs = new Map<Rule, Awaitable<number>>();

  private readonly levels: readonly Rule[];

  constructor(
    /** The rules that are checked together. Their ancestors may have been checked before. */
    private readonly rules: readonly Rule[],
    private readonly input: LevelInput,
  ) {
    this.levels = [...new Set(rules.flatMap((rule) => [rule, ...rule.ancestors]))];
  }

  skips(rule: Rule): Awaitable<boolean> {
    return once(this.skipped, rule, () => !this.rules.includes(rule) || this.input.skips(rule));
  }

  /** The identity at a level, nested in the identities of all levels above. */
  identity(rule: Rule): Awaitable<string | undefined> {
    const own = this.ownIdentity(rule);
    if (!rule.isNested) return own;
    return andThen(own, (found) => {
      if (found === undefined) return undefined;
      const { ancestors } = rule;
      return andThen(
        mapAll(ancestors, (above) => this.ownIdentity(above)),
        (others) => rule.identityAmong((level) => (level === rule ? found : others[ancestors.indexOf(level)])),
      );
    });
  }

  /** The cost of the request at a level: the level's own cost, otherwise the highest cost directly within it, otherwise one unit. */
  cost(rule: Rule): Awaitable<number> {
    return once(this.costs, rule, () =>
      rule.hasCost ? this.input.cost(rule) : andThen(this.chargedWithin(rule), (largest) => largest ?? 1),
    );
  }

  /** The highest cost directly within a level. A level that does not count the request passes on the cost within it. */
  private chargedWithin(rule: Rule): Awaitable<number | undefined> {
    const within = this.levels.filter(({ ancestors }) => ancestors[0] === rule);
    const charged = mapAll(within, (each) =>
      andThen<boolean, number | undefined>(this.counts(each), (counts) =>
        counts ? this.cost(each) : this.chargedWithin(each),
      ),
    );
    return andThen(charged, (costs) => {
      const known = costs.filter((cost) => cost !== undefined);
      return known.length === 0 ? undefined : Math.max(...known);
    });
  }

  private counts(rule: Rule): Awaitable<boolean> {
    return andThen<boolean, boolean>(this.skips(rule), (skips) =>
      skips ? false : andThen(this.ownIdentity(rule), (identity) => identity !== undefined),
    );
  }

  private ownIdentity(rule: Rule): Awaitable<string | undefined> {
    return once(this.identities, rule, () => andThen(this.skips(rule), (skips) => this.input.identity(rule, !skips)));
  }
}

/** Returns the cached value for a rule, or finds it. */
function once<T>(known: Map<Rule, Awaitable<T>>, rule: Rule, find: () => Awaitable<T>): Awaitable<T> {
  const before = known.get(rule);
  if (before !== undefined || known.has(rule)) return before as Awaitable<T>;
  const found = find();
  known.set(rule, found);
  return found;
}
