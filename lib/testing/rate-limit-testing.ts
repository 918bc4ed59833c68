import type { RateLimitSettings } from '../app/config/settings.js';
import {
  RATE_LIMIT_HOME,
  RATE_LIMIT_LISTS,
  RATE_LIMIT_REDIS,
  RATE_LIMIT_SETTINGS,
  RATE_LIMIT_STORE,
} from '../app/config/tokens.js';
import type { CountingPlace } from '../nest/store-stack.js';
import { createAppStore } from '../nest/store.providers.js';
import { readConfiguredLists } from '../app/overrides/lists/list-options.js';
import { Lists } from '../app/overrides/lists/lists.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../storage/stores/store.js';
import { DecisionStream } from '../storage/telemetry/decision-stream.js';
import type { WindowCount } from '../engine/algorithms/algorithm.js';
import { openDecision } from '../storage/stores/store-decision.js';
import { DirectStore, report } from '../storage/stores/decide.js';
import type { CheckEntry } from '../engine/limits/counter.js';

const nothing = () => Promise.resolve();

/** Allows everything without counting. */
class OpenStore extends DirectStore implements Store {
  readonly refund = nothing;
  readonly penalize = nothing;
  readonly block = nothing;
  readonly reset = nothing;
  readonly close = nothing;
  readonly renew = (): Promise<boolean> => Promise.resolve(true);
  readonly history = (): Promise<WindowCount[]> => Promise.resolve([]);
  private leases = 0;

  /** @internal */
  decide({ entries }: Check, answer: CheckAnswer): void {
    report(
      answer,
      entries.map((entry) => this.allow(entry)),
    );
  }

  /** @internal */
  override decidesAtOnce(): boolean {
    return true;
  }

  private allow(entry: CheckEntry): StoreDecision {
    const decision: StoreDecision = openDecision(entry.limit);
    // Each admitted request gets a lease, as in production.
    if (entry.limit.algorithm.leases !== undefined) decision.ticket = ++this.leases;
    return decision;
  }
}

/** The part of the builder of `Test.createTestingModule` (`@nestjs/testing`) that is used here. */
export interface TestingBuilder {
  /** Begins to override a provider. */
  overrideProvider(token: symbol): {
    /** Overrides it with the result of a factory. */
    useFactory(options: { factory: (...args: never[]) => unknown; inject?: unknown[] }): unknown;
  };
}

/**
 * Changes the limits of an app in its tests. The app keeps its `RateLimitModule` unchanged, and doesn't need Redis. The last call for a
 * builder wins.
 */
export class RateLimitTesting {
  /**
   * Allows everything: limits of the app's routes and code don't reject, delay or count, and lists don't deny. Invalid options are still
   * reported at start-up, and `onMissingKey` still applies to requests without a key.
   *
   * @example
   * ```ts
   * const testing = await RateLimitTesting.disable(Test.createTestingModule({ imports: [AppModule] })).compile();
   * ```
   * @returns the builder
   */
  static disable<Builder extends TestingBuilder>(builder: Builder): Builder {
    builder.overrideProvider(RATE_LIMIT_LISTS).useFactory({
      factory: ({ options }: RateLimitSettings) => new Lists(readConfiguredLists(options.lists), true),
      inject: [RATE_LIMIT_SETTINGS],
    });
    return replace(builder, { replacement: new OpenStore() });
  }

  /**
   * Counts all limits of the app in a store of the test, such as one from `createTestingStore`. The store stays open when the app closes.
   *
   * @example
   * ```ts
   * const clock = new TestClock();
   * const store = createTestingStore({ clock });
   * const builder = Test.createTestingModule({ imports: [AppModule] });
   * const testing = await RateLimitTesting.useStore(builder, store).compile();
   * ```
   * @returns the builder
   */
  static useStore<Builder extends TestingBuilder>(builder: Builder, store: Store): Builder {
    return replace(builder, { store });
  }
}

/** Builds the store stack as in production, but counts in another store. */
function replace<Builder extends TestingBuilder>(builder: Builder, place: CountingPlace): Builder {
  for (const connection of [RATE_LIMIT_REDIS, RATE_LIMIT_HOME])
    builder.overrideProvider(connection).useFactory({ factory: () => undefined });
  builder.overrideProvider(RATE_LIMIT_STORE).useFactory({
    factory: (settings: RateLimitSettings, decisions: DecisionStream, lists: Lists) =>
      createAppStore(settings, decisions, lists, place),
    inject: [RATE_LIMIT_SETTINGS, DecisionStream, RATE_LIMIT_LISTS],
  });
  return builder;
}
