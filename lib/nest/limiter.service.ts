import { type ExecutionContext, Inject, Injectable, type Type } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { LimitDefinition } from '../app/config/limit-definition.js';
import type { LimitResolver } from '../app/config/limits-by-request.js';
import { Explanations } from './explain/explanations.js';
import type { Explanation } from './explain/explanation.js';
import type { LimitQuery, RouteQuery } from './explain/question.js';
import type { ListEntry } from '../app/config/list-entry.js';
import { Limiter } from '../app/limiter/limiter.js';
import { LimitResolvers } from '../app/rules/by-request/limit-resolvers.js';
import { LimitRegistry } from '../app/rules/limit-registry.js';
import type { Rule } from '../app/rules/rule.js';
import { CallerAnswer, leasedResult, takenResult } from '../app/limiter/caller-answer.js';
import { decidedEnforced, decideEnforced } from '../storage/stores/decide.js';
import { refuseHeld } from '../app/limiter/called-limit.js';
import { checkOf, entriesOf, type LimitCheck } from '../app/limiter/limit-checks.js';
import type { LeasedCheckResult } from '../app/limiter/lease.js';
import { ReservedCheck } from '../app/limiter/reservation.js';
import { WaitQueues } from '../app/waiting/wait-queues.js';
import { configError, RateLimitArgumentError, RateLimitConfigError } from '../engine/errors/errors.js';
import { byRequestMessages } from '../engine/errors/messages/app-code.js';
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
import type { Layer } from '../storage/stores/layers/store-layer.js';
import type { DecisionEvent } from '../storage/telemetry/decision-event.js';
import { DecisionStream } from '../storage/telemetry/decision-stream.js';

/** Limits for code that isn't a route. Limits with the same name share their counters, in code and on routes. */
@Injectable()
export class LimiterService {
  /**
   * Every decision of this instance, as soon as it is made: of routes and of code, one for each limit and each candidate, including
   * decisions from the cache, but not those of `peek`. Subscribers are called synchronously while the request waits; without subscribers it
   * has no cost. Completes when the app has shut down.
   */
  readonly decisions$: Observable<DecisionEvent>;

  /** @internal */
  constructor(
    private readonly registry: LimitRegistry,
    private readonly queues: WaitQueues,
    @Inject(RATE_LIMIT_STORE) private readonly store: Layer,
    private readonly overrides: Overrides,
    stream: DecisionStream,
    private readonly explanations: Explanations,
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
    // Errors in the ancestors of a limit with a name are reported at start-up.
    if (typeof limit === 'object') void rule.ancestors;
    return this.ofRule(rule);
  }

  /** @internal The limiter of a name, which is looked up at first use. */
  lazily(name: string): Limiter {
    const rule = () => this.registry.rule(name, { location: 'LimiterService.for', namespace: '' });
    return new Limiter(name, rule, this.store, this.queues);
  }

  /** @internal The limiter of a rule, which may be declared anywhere. */
  ofRule(rule: Rule): Limiter {
    return new Limiter(rule.name, () => rule, this.store, this.queues);
  }

  /**
   * Takes units from several limits at once: from all of them, or, if one rejects, from none. With `upTo` for all of them, takes the number
   * of units that the limit with the fewest remaining units has, and returns it in `taken`. Rejects with `RateLimitArgumentError` if the
   * list is empty, has more than 1,000 limits, costs more work than 2,500 plain limits, contains one limit twice for the same key, or has
   * an invalid cost or key.
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
   * Reserves units of several limits at once: of all of them, or, if one rejects, of none. Units of limits with a `hold` are held, and all
   * can be settled: for example the requests, tokens and money of one call, each with its own cost. Units that are not available now are
   * rejected. Rejects like `check`, and for `concurrency` limits.
   */
  async reserve(checks: readonly LimitCheck[]): Promise<ReservedCheck> {
    const entries = entriesOf(checks, this.registry, 'reserve');
    refuseHeld(entries, 'reserved');
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
   * Drops the cached result of a `LimitResolver` for a key, such as a tenant whose plan has just changed; without a key, all of its
   * results. The next request calls `resolve` again. It only affects this instance of the app: call it in all of them, or the others follow
   * after `ttl`. Throws `RateLimitArgumentError` for a class that no limit of the app uses.
   */
  forgetResolved(resolver: Type<LimitResolver>, key?: string): void {
    const resolved = this.resolvers.made(resolver);
    if (resolved === undefined) throw new RateLimitArgumentError(byRequestMessages.noResolverOfApp(resolver));
    resolved.forget(key);
  }

  /**
   * Changes the rate of a limit at run time: of a limit in `define` or `forFeature`, or of a limit of the module with a `name`. The patch
   * replaces the configured options, and any earlier change. With a `key` it changes the rate for one key, or for all keys with a prefix
   * (`'tenant:*'`); if several match, the most specific one applies. When the promise resolves, this instance uses the new rate; all others
   * with the same Redis and `prefix` do so within 100 ms. Without `redis` the change affects this process only. Rejects with
   * `RateLimitConfigError` for an invalid name, patch or option, without any change; with `RateLimitStoreError` if Redis did not respond in
   * time, in which case the change may still take effect later.
   */
  async setRate(name: string, patch: RatePatch, options: SetRateOptions = {}): Promise<void> {
    await this.overrides.setRate('set', name, patch, options, 'setRate');
  }

  /**
   * Like `setRate`, but has no effect if there already is a change. Resolves to true if it made its change. Of many simultaneous calls, on
   * any instances, exactly one resolves to `true`.
   */
  async trySetRate(name: string, patch: RatePatch, options: SetRateOptions = {}): Promise<boolean> {
    return (await this.overrides.setRate('try', name, patch, options, 'trySetRate')) !== undefined;
  }

  /**
   * Returns the rate of a limit, or the one that applies to a `key` of it, with its source. It is read from Redis; while Redis does not
   * respond, it is the rate that this instance uses. Rejects with `RateLimitConfigError` if no limit has the name.
   */
  async getRate(name: string, query: OverrideQuery = {}): Promise<CurrentRate> {
    return this.overrides.getRate(name, query);
  }

  /**
   * Ends a change. The configured rate applies again on all instances; for a `key`, the rate that applies to it without the change.
   * Resolves to true if there was a change to end. Counted units stay. Rejects like `setRate`.
   */
  async clearRate(name: string, options: ClearOptions = {}): Promise<boolean> {
    return (await this.overrides.clearRate(name, options)) !== undefined;
  }

  /** Returns the rates of all limits whose rates can be changed, including unchanged ones. Reads them like `getRate`. */
  listRates(): Promise<CurrentRate[]>;
  /** Returns the changes for single keys of a limit, one page in the order of the keys. Reads them like `getRate`. */
  listRates(name: string, options?: ListOverridesOptions): Promise<OverridePage>;
  async listRates(name?: string, options: ListOverridesOptions = {}): Promise<CurrentRate[] | OverridePage> {
    return name === undefined ? this.overrides.listRates() : this.overrides.listKeys(name, options);
  }

  /**
   * Changes the mode of a limit at run time: `'enforce'`; `'shadow'`, which counts but never rejects; or `'off'`, which does not check the
   * limit at all. With a `key` it changes the mode for one key, or for all keys with a prefix. Otherwise like `setRate`.
   */
  async setMode(name: string, mode: LimitMode, options: OverrideOptions = {}): Promise<void> {
    await this.overrides.setMode(name, mode, options);
  }

  /** Ends a change of a mode. Resolves to true if there was one. */
  async clearMode(name: string, options: ClearOptions = {}): Promise<boolean> {
    return (await this.overrides.clearMode(name, options)) !== undefined;
  }

  /** Returns the mode of a limit, or the one that applies to a `key` of it, with its source. Reads it like `getRate`. */
  async getMode(name: string, query: OverrideQuery = {}): Promise<CurrentMode> {
    return this.overrides.getMode(name, query);
  }

  /**
   * Exempts addresses, a key, or all keys with a prefix from one limit or from all limits: they are neither checked nor charged. An entry
   * on the other list is moved. When the promise resolves, this instance uses the entry; all others with the same Redis and `prefix` do so
   * within 100 ms. Rejects like `setRate`.
   */
  async allow(entry: ListEntry, options: ListOptions = {}): Promise<void> {
    await this.overrides.lists.put('allow', entry, options);
  }

  /** Denies addresses, a key, or all keys with a prefix, without calling Redis. Otherwise like `allow`. */
  async deny(entry: ListEntry, options: ListOptions = {}): Promise<void> {
    await this.overrides.lists.put('deny', entry, options);
  }

  /**
   * Removes an entry that `allow` or `deny` added. An entry of the module's options that it replaced applies again. Resolves to true if
   * there was an entry to remove. Rejects like `setRate`.
   */
  async unlist(entry: ListEntry, options: UnlistOptions = {}): Promise<boolean> {
    return (await this.overrides.lists.end(entry, options)) !== undefined;
  }

  /**
   * Returns the entries of lists, a page at a time, including those of the module's options; with `ip` or `key`, only the entry that
   * decides for them, if any. Reads them like `getRate`. Rejects with `RateLimitConfigError` for an invalid option.
   */
  async listEntries(options: ListPageOptions = {}): Promise<ListPage> {
    return this.overrides.lists.page(options);
  }

  /**
   * Returns the latest changes of rates, modes and lists by any instance, the newest first. The history contains up to 1,000 changes.
   * Rejects with `RateLimitStoreError` while Redis does not respond.
   */
  async changes(options: ChangesOptions = {}): Promise<RecordedChange[]> {
    return this.overrides.changes(options);
  }

  /**
   * Restores all overrides and lists to their state after the change `version`; 0 restores the state before the first change. Overrides
   * that have expired since then stay expired. Counted units stay. The rollback is itself a change. Resolves to true if there was a change
   * to undo. Rejects like `setRate`.
   */
  async rollback(version: number, options: ChangeCause = {}): Promise<boolean> {
    return (await this.overrides.rollback(version, options)) !== false;
  }

  /**
   * Explains which limits apply, where they come from, who they count, which overrides are active, how much is left, and how a request
   * would be decided: for a limit and a key, for a route, or for the request of a context. Charges and writes nothing. While Redis does not
   * respond, everything but the counters is explained. Rejects with `RateLimitConfigError` for an unknown limit, class or method.
   */
  async explain(of: LimitQuery | RouteQuery | ExecutionContext): Promise<Explanation> {
    return this.explanations.explain(of);
  }
}

/** This service created clients before 1.0. */
const isOfOutbound = (method: string): RateLimitConfigError =>
  configError('SLUICE_MOVED_METHOD', messages.movedToOutbound(method));
