import type { WindowCount } from '../../engine/algorithms/algorithm.js';
import { argumentError, RateLimitArgumentError, RateLimitStoreError } from '../../engine/errors/errors.js';
import { ownStoreMessages } from '../../engine/errors/messages/own-store.js';
import { type Counter, startsOf } from '../../engine/limits/counter.js';
import { answerWith, DirectStore } from '../../storage/stores/decide.js';
import { keyOf } from '../../storage/stores/redis/keys.js';
import type {
  Charge,
  Check,
  CheckAnswer,
  HeldLease,
  Refund,
  ReserveEntry,
  Store,
  StoreDecision,
} from '../../storage/stores/store.js';
import { partsOf, ScratchStore, textOf, unreadable } from './stored-counter.js';

/** A value to store under a key. */
export interface CounterWrite {
  /** One of the keys of the transaction. */
  readonly key: string;
  /** The new value, a text of ASCII; `undefined` deletes the key. */
  readonly value: string | undefined;
  /** When the value may be deleted, in milliseconds since the epoch. Keeping it longer does no harm. */
  readonly expiresAt: number;
}

/** The changes of a transaction. */
export interface CounterChanges<T> {
  /** The values to store; empty if nothing changes. */
  readonly writes: readonly CounterWrite[];
  /** The return value of `transact` once the changes are stored. */
  readonly result: T;
}

/** Options of a `TransactionalStore`. */
export interface TransactionalStoreOptions {
  /**
   * The prefix of all keys.
   * @default 'sluice'
   */
  readonly prefix?: string;
  /**
   * The time in whole microseconds since the epoch, for transactions that pass no time of their own.
   * @default the clock of the process
   */
  readonly clock?: () => number;
}

/** How much longer than necessary a value is kept, in milliseconds, because clocks differ. */
const SPARE_MS = 1000;

/**
 * A store on any database with transactions. Your class reads and writes keys in a transaction, and this base class decides. All algorithms
 * except `adaptive`, and blocks, offences, holds, refunds and reservations work as on Redis. It doesn't support `usage`, `credits`,
 * outbound calls and jobs: a check of such a limit fails with `RateLimitArgumentError`.
 */
export abstract class TransactionalStore extends DirectStore implements Store {
  readonly #scratch = new ScratchStore();
  readonly #prefix: string;
  readonly #clock: () => number;

  /**
   * Creates the store. It doesn't access the database yet.
   *
   * @param options prefix and clock
   */
  constructor({ prefix = 'sluice', clock = () => Date.now() * 1000 }: TransactionalStoreOptions = {}) {
    super();
    this.#prefix = prefix;
    this.#clock = clock;
  }

  /**
   * Reads keys, calls `change`, and stores the changes, all in one transaction that no other one interferes with: none may read or change
   * these keys in the meantime. `change` gets the stored value of each key in the order of `keys`, `undefined` or `null` if there is none.
   * It takes microseconds and may be called again if the transaction has to be repeated. Rejects if nothing was stored.
   *
   * @param keys different keys in ascending order, so that transactions that lock one key after another can't deadlock
   * @param change decides; its second argument is the time of the database in whole microseconds since the epoch; default: the store's
   * clock
   */
  protected abstract transact<T>(
    keys: readonly string[],
    change: (values: readonly (string | null | undefined)[], now?: number) => CounterChanges<T>,
  ): Promise<T>;

  /** @internal */
  decide(check: Check, answer: CheckAnswer): void {
    answerWith(this.#decided(check), answer);
  }

  async #decided(check: Check): Promise<StoreDecision[]> {
    const counters = (check.entries as readonly ReserveEntry[]).map((entry) => {
      this.#assertKept(entry, entry.claim !== undefined && 'a claim of a job');
      return entry.ofStarts === true ? startsOf(entry) : entry;
    });
    return this.#change(counters, (scratch) => scratch.decideAtOnce(check));
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    const counters = refunds.map((refund) => (refund.ofStarts === true ? startsOf(refund) : refund));
    return this.#change(counters, (scratch) => scratch.refund(refunds));
  }

  penalize(charge: Charge): Promise<void> {
    return this.#change([charge], (scratch) => scratch.penalize(charge));
  }

  block(counter: Counter, durationMs: number): Promise<boolean | void> {
    return this.#change([counter], (scratch) => scratch.block(counter, durationMs));
  }

  renew(lease: HeldLease): Promise<boolean> {
    return this.#change([lease], (scratch) => scratch.renew(lease));
  }

  reset(counters: readonly Counter[]): Promise<boolean | void> {
    return this.#change(counters, (scratch) => scratch.reset(counters));
  }

  history(counter: Counter): Promise<WindowCount[]> {
    return this.#change([counter], (scratch) => scratch.history(counter));
  }

  blockedFor(counter: Counter): Promise<number> {
    return this.#change([counter], (scratch) => scratch.blockedFor(counter));
  }

  /** Does nothing: the app closes the connections that it opened. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Changes counters in one transaction. */
  async #change<T>(counters: readonly Counter[], work: (scratch: ScratchStore) => T | Promise<T>): Promise<T> {
    for (const counter of counters) this.#assertKept(counter);
    const byKey = new Map(counters.map((counter) => [keyOf(this.#prefix, counter), counter]));
    const keys = [...byKey.keys()].toSorted();
    let isChanged = false;
    const answer = await this.transact(keys, (values, now = this.#clock()) => {
      isChanged = true;
      if (!Array.isArray(values) || values.length !== keys.length) {
        throw new RateLimitStoreError(ownStoreMessages.wrongCount(values, keys.length));
      }
      const scratch = this.#scratch;
      scratch.begin(now);
      try {
        for (const [index, key] of keys.entries()) {
          const value: unknown = values[index];
          if (value !== undefined && value !== null) scratch.put(byKey.get(key)!, partsOf(key, value));
        }
        // Nothing to wait for: the counters are in memory.
        const result = [work(scratch)] as const;
        const writes = keys.flatMap((key, index) => this.#writeOf(key, byKey.get(key)!, values[index] ?? undefined));
        return { writes, result };
      } catch (error) {
        if (!(error instanceof TypeError) || error instanceof RateLimitArgumentError) throw error;
        // The stored value has the form of a counter, but isn't a valid one.
        throw unreadable(keys.join("', '"), values, error);
      } finally {
        scratch.end();
      }
    });
    if (!isChanged) throw new RateLimitStoreError(ownStoreMessages.neverChanged(this.constructor.name));
    return answer[0];
  }

  #writeOf(key: string, counter: Counter, before: string | undefined): CounterWrite[] {
    const entry = this.#scratch.get(counter);
    const value = entry && textOf(entry);
    if (value === before) return [];
    return [{ key, value, expiresAt: entry === undefined ? 0 : Math.ceil(entry.expiresAt / 1000) + SPARE_MS }];
  }

  #assertKept({ limit }: Counter, other: string | false = false): void {
    const kept = limit.features?.find(({ memory }) => memory !== undefined);
    const what =
      other ||
      (limit.adapts && `algo '${limit.algorithm.name}'`) ||
      (limit.takesCredits && "'credits'") ||
      (kept !== undefined && `'${kept.name}'`);
    if (what)
      throw argumentError(
        'SLUICE_UNSUPPORTED_CALL',
        ownStoreMessages.cannotKeep(limit.name, what, this.constructor.name),
      );
  }
}
