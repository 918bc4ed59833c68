import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { configError, RateLimitStoreError } from '../../engine/errors/errors.js';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { outboundMessages } from '../../engine/errors/messages/outbound.js';
import { WaitQueues } from '../../app/waiting/wait-queues.js';
import { addProvider } from '../../nest/rate-limit.module.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import { listedLimits, refuseWrongList } from '../../app/limiter/limit-checks.js';
import type { Store } from '../../storage/stores/store.js';
import { Flights } from './learning/flights.js';
import { LearnedRule, LearnedRules, type OutboundRule } from './learning/learned-rules.js';
import { type AxiosOptions, type LimitedAxios, limitedAxios } from './clients/limited-axios.js';
import { type DispatcherOptions, limitedDispatcher, type LimitedDispatcher } from './clients/limited-dispatcher.js';
import { limitedFetch } from './clients/limited-fetch.js';
import { OutboundCaller } from './outbound-call.js';
import { type FetchOptions, type LearnedLimit, type OutboundLimits, readOptions } from './outbound-options.js';

const log = new OnceLogger(logger);

/** Creates clients whose outbound calls wait for their turn. Inject it like `LimiterService`. */
@Injectable()
export class OutboundLimiter implements OnModuleDestroy {
  private readonly flights: Flights;
  private readonly learned: LearnedRules;

  /** @internal */
  constructor(
    private readonly registry: LimitRegistry,
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    private readonly waits: WaitQueues,
  ) {
    this.learned = new LearnedRules(registry);
    this.flights = new Flights(store, this.learned, (error) => {
      // The store reports its own errors.
      if (!(error instanceof RateLimitStoreError)) log.error(outboundMessages.learningFailed(), error);
    });
  }

  /** Called by Nest: waits until the store has learned everything. */
  onModuleDestroy(): Promise<void> {
    return this.flights.settled();
  }

  /**
   * Creates a `fetch` for outbound calls. Each call waits for its turn and takes units of all limits or of none. Calls keep their order. A
   * call rejects with `RateLimitTimeoutError` as soon as its wait is known to exceed `timeout`, with the reason of its signal, with
   * `RateLimitArgumentError` for an invalid key or cost, and with any error of `fetch`. Units of `concurrency` limits are held until the
   * body was read or cancelled. Throws `RateLimitConfigError`.
   */
  fetch(limits: OutboundLimits, options?: FetchOptions): typeof fetch {
    return limitedFetch(this.caller(limits, options, 'OutboundLimiter.fetch'));
  }

  /**
   * Limits axios instances, such as that of `@nestjs/axios`: `outbound.axios('shopify').attach(httpService.axiosRef)`. Their requests wait
   * like calls of `fetch`. Throws `RateLimitConfigError`.
   */
  axios(limits: OutboundLimits, options?: AxiosOptions): LimitedAxios {
    return limitedAxios(this.caller(limits, options, 'OutboundLimiter.axios'));
  }

  /**
   * Creates an interceptor for undici 7 or later: `agent.compose(outbound.dispatcher('github'))`. Its requests wait like calls of `fetch`.
   * Throws `RateLimitConfigError`.
   */
  dispatcher(limits: OutboundLimits, options?: DispatcherOptions): LimitedDispatcher {
    return limitedDispatcher(this.caller(limits, options, 'OutboundLimiter.dispatcher'));
  }

  private caller<Sent, Answer>(limits: OutboundLimits, options: unknown, location: string) {
    const rules = this.rules(limits, location);
    const settings = readOptions<Sent, Answer>(options, location);
    refuseOtherNames(settings.learn, rules, location);
    for (const rule of rules) {
      if (!(rule instanceof LearnedRule)) continue;
      if (settings.learn === false) {
        throw configError('SLUICE_MISSING_OPTION', outboundMessages.learnedWithoutLearn(location, rule.name));
      }
      rule.waitAtMost(settings.maxLearnedWaitMs);
    }
    const { store, waits, flights } = this;
    return new OutboundCaller(rules, settings, { store, waits }, flights);
  }

  private rules(limits: OutboundLimits, location: string): OutboundRule[] {
    const rules = listedLimits<string | LimitDefinition | LearnedLimit>(limits, location).map((limit) =>
      LearnedRules.defines(limit)
        ? this.learned.rule(limit as LearnedLimit, location)
        : this.registry.rule(limit as string | LimitDefinition, { location, namespace: '' }),
    );
    refuseWrongList(rules, location);
    return rules;
  }
}

// You can inject it after importing it, without a module of its own.
addProvider(OutboundLimiter);

/** Rejects names of limits that the calls don't use: these would never learn anything. */
function refuseOtherNames(learn: boolean | object, rules: readonly OutboundRule[], location: string): void {
  const names = rules.map(({ name }) => name);
  const other = Object.keys(learn).find((name) => !names.includes(name));
  if (other !== undefined)
    throw configError('SLUICE_UNKNOWN_LIMIT', outboundMessages.learnsOther(location, other, names));
}
