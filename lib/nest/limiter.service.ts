import { type ExecutionContext, Inject, Injectable, type Type } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { LimitDefinition } from '../app/config/limit-definition.js';
import type { LimitResolver } from '../app/config/limits-by-request.js';
import { Explainer } from './explain/explainer.js';
import type { Explanation } from './explain/explanation.js';
import type { LimitQuery, RouteQuery } from './explain/question.js';
import type { ListEntry } from '../app/config/list-entry.js';
import { Limiter } from '../app/limiter/limiter.js';
import { LimitResolvers } from '../app/rules/by-request/limit-resolvers.js';
import { LimitRegistry } from '../app/rules/limit-registry.js';
import type { Rule } from '../app/rules/rule.js';
import { CallerAnswer, leasedResult } from '../app/limiter/caller-answer.js';
import { takenResult } from '../app/limiter/take.js';
import { decidedEnforced, decideEnforced } from '../storage/stores/enforced-entries.js';
import { refuseHeldEntries } from '../app/limiter/reserve.js';
import { checkOf, entriesOf, type LimitCheck } from '../app/limiter/limit-checks.js';
import type { LeasedCheckResult } from '../app/limiter/lease.js';
import { ReservedCheck } from '../app/limiter/reserved-check.js';
import { WaitQueues } from '../app/waiting/wait-queues.js';
import { RateLimitArgumentError, RateLimitConfigError } from '../engine/errors/errors.js';
import { byRequestMessages } from '../engine/errors/messages/by-request.js';
import { messages } from '../engine/errors/messages/general.js';
import { RATE_LIMIT_STORE } from '../app/config/tokens.js';
import type { ChangeCause } from '../app/overrides/change-cause.js';
import type { ListOptions, ListPage, ListPageOptions, UnlistOptions } from '../app/overrides/lists/list.js';
import type { LimitMode } from '../engine/limits/limit-settings.js';
import type {
  ChangesOptions,
  ClearOptions,
  CurrentMode,
  CurrentRate,
  ListOverridesOptions,
  OverrideOptions,
  OverridePage,
  OverrideQuery,
  RatePatch,
  RecordedChange,
  SetRateOptions,
} from '../app/overrides/override.js';
import { Overrides } from '../app/overrides/overrides.js';
import type { Store } from '../storage/stores/store.js';
import type { DecisionEvent } from '../storage/telemetry/decision-event.js';
import { DecisionStream } from '../storage/telemetry/decision-stream.js';

/** Limits for code that is not a route. Limits with the same name share their counters, in code and on routes. */
@Injectable()
export class LimiterService {
  /**
   * Every decision of this instance, as soon as it is made: of routes and of code, one for each limit and each candidate,
   * including decisions from the cache, but not those of `peek`. Subscribers are called while the request waits; without
   * subscribers it costs nothing. Completes when the app has shut down.
   */
  readonly decisions$: Observable<DecisionEvent>;

  /** @internal */
  constructor(
    private readonly registry: LimitRegistry,
    private readonly queues: WaitQueues,
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    private readonly overrides: Overrides,
    stream: DecisionStream,
    private readonly explainer: Explainer,
    private readonly resolvers: LimitResolvers,
  ) {
    this.decisions$ = stream.events;
  }

  /** The limiter of a limit, or of a defined limit's name. Throws `RateLimitConfigError`. */
  for(limit: LimitDefinition): Limiter;
  /** The limiter of a limit, or of a defined limit's name. Throws `RateLimitConfigError`. */
  for(limit: LimitDefinition | string): Limiter;
  for(limit: LimitDefinition | string): Limiter {
    return this.declared(limit, 'LimiterService.for', true);
  }

  /** @internal The limiter of a limit that is declared elsewhere; `location` is for messages. */
  declared(limit: LimitDefinition | string, location: string, inCall = false): Limiter {
    const rule = this.registry.rule(limit, { location, namespace: '', inCall });
    // Mistakes in the limits it is within are reported at start-up, for limits with a name.
    if (typeof limit === 'object') void rule.ancestors;
    return this.ofRule(rule);
  }

  /** @internal The limiter of a name, which is looked up at first use. */
  lazily(name: string): Limiter {
    const rule = () => this.registry.rule(name, { location: 'LimiterService.for', namespace: '' });
    return new Limiter(name, rule, this.store, this.queues);
  }

  /** @internal The limiter of a rule, wherever it is declared. */
  ofRule(rule: Rule): Limiter {
    return new Limiter(rule.name, () => rule, this.store, this.queues);
  }

  /**
   * Takes units from several limits at once: from all of them, or, if one refuses, from none. With `upTo` for all of them, takes as many
   * units as the one has that has the fewest left, and says how many in `taken`. Rejects with
   * `RateLimitArgumentError` if the list is empty, has more than 1,000 limits, costs more work than 2,500 plain limits, has one
   * limit twice for the same key, or has a wrong cost or key.
   */
  check(checks: readonly LimitCheck[]): Promise<LeasedCheckResult> {
    try {
      const check = checkOf(checks, this.registry);
      const result = check.upTo === true ? takenResult : leasedResult;
      const answer = new CallerAnswer(result, check.entries, this.store, this.queues);
      decideEnforced(this.store, check, answer);
      return answer.promise();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Reserves units of several limits at once: of all of them, or, if one refuses, of none. Units of limits with a `hold` are
   * held, and all can be settled: for example requests, tokens and money of one call, each at its own cost. Units that are not
   * available now are refused. Rejects as `check` does, and for `concurrency` limits.
   */
  async reserve(checks: readonly LimitCheck[]): Promise<ReservedCheck> {
    const entries = entriesOf(checks, this.registry, 'reserve');
    refuseHeldEntries(entries);
    const answers = await decidedEnforced(this.store, { entries, hold: true, refundable: true });
    return new ReservedCheck(entries, answers, this.store, this.queues);
  }

  /** @internal */
  fetch(): never {
    throw isOfOutbound('fetch');
  }

  /** @internal */
  axios(): never {
    throw isOfOutbound('axios');
  }

  /** @internal */
  dispatcher(): never {
    throw isOfOutbound('dispatcher');
  }

  /**
   * Forgets what a `LimitResolver` answered for a key, such as a tenant whose plan has just changed; without a key, all of its answers.
   * The next request calls `resolve` again. It concerns this instance of the app: call it in all of them, or they follow after `ttl`.
   * Throws `RateLimitArgumentError` for a class that finds no limits of the app.
   */
  forgetResolved(resolver: Type<LimitResolver>, key?: string): void {
    const resolved = this.resolvers.made(resolver);
    if (resolved === undefined) throw new RateLimitArgumentError(byRequestMessages.noResolverOfApp(resolver));
    resolved.forget(key);
  }

  /**
   * Changes the rate of a limit while the app runs: of one in `define` or `forFeature`, or of the module's with a `name`. The
   * patch replaces the configured options, and any earlier change. With a `key` it changes the rate of one identity, or of all
   * whose keys begin with a prefix (`'tenant:*'`); if several match, the most specific one applies. When the promise resolves,
   * this instance uses the new rate; all others with the same Redis and `prefix` do so within 100 ms. Without `redis` the change
   * affects this process only. Rejects with `RateLimitConfigError` if the name, the patch or an option is wrong, and changes
   * nothing then; with `RateLimitStoreError` if Redis did not answer in time, when the change may still take effect later.
   */
  async setRate(name: string, patch: RatePatch, options: SetRateOptions = {}): Promise<void> {
    await this.overrides.setRate('set', name, patch, options, 'setRate');
  }

  /**
   * Like `setRate`, but does nothing if a change is already in force. Resolves to whether it made its change: of many
   * simultaneous calls, on any instances, exactly one resolves to `true`.
   */
  async trySetRate(name: string, patch: RatePatch, options: SetRateOptions = {}): Promise<boolean> {
    return (await this.overrides.setRate('try', name, patch, options, 'trySetRate')) !== undefined;
  }

  /**
   * Returns the rate of a limit, or the one that applies to a `key` of it, with its source. It is read from Redis; while Redis
   * does not answer, it is the rate by which this instance decides. Rejects with `RateLimitConfigError` if no limit has the name.
   */
  async getRate(name: string, query: OverrideQuery = {}): Promise<CurrentRate> {
    return this.overrides.getRate(name, query);
  }

  /**
   * Ends a change: the configured rate is in force again on all instances; or, for a `key`, whatever applies to it without the
   * change. Resolves to whether there was a change to end. Counted units stay. Rejects as `setRate` does.
   */
  async clearRate(name: string, options: ClearOptions = {}): Promise<boolean> {
    return (await this.overrides.clearRate(name, options)) !== undefined;
  }

  /** Returns the rates of all limits whose rates can be changed, changed or not. Reads them as `getRate` does. */
  listRates(): Promise<CurrentRate[]>;
  /** Returns what is changed for single keys of a limit, one page in the order of the keys. Reads it as `getRate` does. */
  listRates(name: string, options?: ListOverridesOptions): Promise<OverridePage>;
  async listRates(name?: string, options: ListOverridesOptions = {}): Promise<CurrentRate[] | OverridePage> {
    return name === undefined ? this.overrides.listRates() : this.overrides.listKeys(name, options);
  }

  /**
   * Changes the mode of a limit while the app runs: `'enforce'`; `'shadow'`, which counts and never refuses; or `'off'`, which
   * does not check the limit at all. With a `key` it changes the mode of one identity, or of all whose keys begin with a prefix.
   * Everything else is as with `setRate`.
   */
  async setMode(name: string, mode: LimitMode, options: OverrideOptions = {}): Promise<void> {
    await this.overrides.setMode(name, mode, options);
  }

  /** Ends a change of a mode. Resolves to whether there was one. */
  async clearMode(name: string, options: ClearOptions = {}): Promise<boolean> {
    return (await this.overrides.clearMode(name, options)) !== undefined;
  }

  /** Returns the mode of a limit, or the one that applies to a `key` of it, with its source. Reads it as `getRate` does. */
  async getMode(name: string, query: OverrideQuery = {}): Promise<CurrentMode> {
    return this.overrides.getMode(name, query);
  }

  /**
   * Exempts addresses, an identity, or all whose keys begin with a prefix from one limit or from all: the limit does not check or
   * charge them. An entry on the other list is moved. When the promise resolves, this instance uses the entry; all others with
   * the same Redis and `prefix` do so within 100 ms. Rejects as `setRate` does.
   */
  async allow(entry: ListEntry, options: ListOptions = {}): Promise<void> {
    await this.overrides.lists.put('allow', entry, options);
  }

  /** Refuses addresses, an identity, or all whose keys begin with a prefix, without a call to Redis. Otherwise like `allow`. */
  async deny(entry: ListEntry, options: ListOptions = {}): Promise<void> {
    await this.overrides.lists.put('deny', entry, options);
  }

  /**
   * Removes an entry that `allow` or `deny` added; an entry of the module's options is then in force again. Resolves to whether
   * there was one. Rejects as `setRate` does.
   */
  async unlist(entry: ListEntry, options: UnlistOptions = {}): Promise<boolean> {
    return (await this.overrides.lists.end(entry, options)) !== undefined;
  }

  /**
   * Returns the entries of lists, a page at a time, including those of the module's options; with `ip` or `key`, only the entry
   * that decides for them, if any. Reads them as `getRate` does. Rejects with `RateLimitConfigError` if an option is wrong.
   */
  async listEntries(options: ListPageOptions = {}): Promise<ListPage> {
    return this.overrides.lists.page(options);
  }

  /**
   * Returns the latest changes of rates, modes and lists by any instance, the newest first. The history holds 1,000 changes.
   * Rejects with `RateLimitStoreError` while Redis does not answer.
   */
  async changes(options: ChangesOptions = {}): Promise<RecordedChange[]> {
    return this.overrides.changes(options);
  }

  /**
   * Restores all overrides and lists to their state after the change `version`, or 0 for before the first change; those that have
   * expired since stay expired. Counted units stay. The rollback is itself a change. Resolves to whether there was a change to
   * undo. Rejects as `setRate` does.
   */
  async rollback(version: number, options: ChangeCause = {}): Promise<boolean> {
    return (await this.overrides.rollback(version, options)) !== false;
  }

  /**
   * Explains which limits apply, where they come from, who they count, which overrides are in force, how much is left, and what a
   * request would get: for a limit and a key, for a route, or for the request of a context. Charges and writes nothing. While
   * Redis does not answer, everything but the counters is explained. Rejects with `RateLimitConfigError` for an unknown limit,
   * class or method.
   */
  async explain(of: LimitQuery | RouteQuery | ExecutionContext): Promise<Explanation> {
    return this.explainer.explain(of);
  }
}

/** Clients were made by this service before 1.0. */
const isOfOutbound = (method: string): RateLimitConfigError =>
  new RateLimitConfigError(messages.movedToOutbound(method), { code: 'SLUICE_MOVED_METHOD' });
