import type { ExecutionContext } from '@nestjs/common';
import { configError } from '../../../engine/errors/errors.js';
import { logger } from '../../../engine/errors/logger.js';
import { byRequestMessages } from '../../../engine/errors/messages/app-code.js';
import { optionMessages } from '../../../engine/errors/messages/options.js';
import { reasonOf } from '../../../engine/errors/reasons.js';
import { isBelowSecond, wholeNumber, wrongOption } from '../../../engine/options/check-options.js';
import { longDuration } from '../../../engine/options/values.js';
import { andThen, type Awaitable, isPromise } from '../../../engine/util/awaitable.js';
import { BoundedMap, Kept } from '../../../engine/util/bounded-maps.js';
import { SharedDeadline, TimedCall } from '../../../storage/redis/deadline.js';
import type { LimitAnswer, LimitResolver } from '../../config/limits-by-request.js';

/** The maximum time until `resolve` is called again after a failure. */
const FAILURE_MS = 1000;
/** The minimum time between two logs of a failing resolver. */
const LOG_MS = 60_000;

class KnownKey extends Kept {
  /** The last valid result; `undefined` if there is none yet. */
  good: LimitAnswer | undefined;
  /** The error of the last failure. Only relevant without a valid result. */
  failure: unknown;
  /** The time until which the state is valid, in milliseconds of the process's clock. */
  until = -Infinity;
  pending: Promise<LimitAnswer> | undefined;
  /** The number of `resolve` calls, and the number of the latest call with a valid result. */
  calls = 0;
  answered = 0;
}

/** Checks a result; throws `RateLimitConfigError` if it isn't a valid set of limits. */
type CheckAnswer = (answer: unknown) => unknown;

/** Caches the results of one resolver. Concurrent calls for one key are merged, and after a failure the last valid result applies. */
export class ResolvedLimits {
  private readonly name: string;
  private readonly ttlMs: number;
  private readonly known: BoundedMap<KnownKey>;
  private loggedAt = -Infinity;

  /** Reads its options; `location` for messages. Throws `RateLimitConfigError`. */
  constructor(
    private readonly resolver: LimitResolver,
    private readonly deadline: AnswerDeadline,
    location: string,
  ) {
    this.name = resolver.constructor.name;
    const { ttl = '1m', maxKeys = 10_000 } = resolver;
    this.ttlMs = longDuration(ttl);
    if (!(this.ttlMs > 0)) throw wrongOption(location, 'ttl', ttl, "a duration such as '1m', more than 0");
    if (isBelowSecond(ttl)) logger.warn(optionMessages.likelySeconds(`${location}.ttl`, ttl));
    this.known = new BoundedMap(wholeNumber(location, 'maxKeys', maxKeys), Infinity);
  }

  /**
   * The limits of a request, synchronously if a result for its key is cached. Throws or rejects if there is neither a result nor a
   * fallback.
   */
  find(context: ExecutionContext, check: CheckAnswer): Awaitable<LimitAnswer> {
    if (this.resolver.keyOf === undefined) return this.lookUp(new KnownKey(''), context, undefined, check);
    return andThen(this.resolver.keyOf(context), (found) => {
      const key = this.read(found);
      // Keys are never empty, so no key has this text.
      const known = this.keyNamed(key ?? '');
      if (performance.now() < known.until) return this.answerOf(known);
      return known.pending ?? this.lookUp(known, context, key, check);
    });
  }

  /**
   * Drops the result for a key, or all results. The next request calls `resolve`, and results of pending calls are ignored. The last valid
   * result still applies if that call fails.
   */
  forget(key?: string): void {
    const all = key === undefined ? this.known.values() : [this.known.get(key)];
    for (const known of all) {
      if (known === undefined) continue;
      known.until = -Infinity;
      known.pending = undefined;
      known.answered = ++known.calls;
    }
  }

  private read(key: unknown): string | undefined {
    if (key === undefined || key === null || key === '') return undefined;
    if (typeof key === 'string') return key;
    if ((typeof key === 'number' && Number.isFinite(key)) || typeof key === 'bigint') return String(key);
    throw configError('SLUICE_INVALID_RESULT', byRequestMessages.wrongKey(this.name, key));
  }

  private keyNamed(key: string): KnownKey {
    let known = this.known.get(key);
    if (known === undefined) this.known.put((known = new KnownKey(key)), 0, false);
    else this.known.touch(known);
    return known;
  }

  private lookUp(
    known: KnownKey,
    context: ExecutionContext,
    key: string | undefined,
    check: CheckAnswer,
  ): Awaitable<LimitAnswer> {
    const call = ++known.calls;
    try {
      const found = this.resolver.resolve(context, key);
      if (!isPromise(found)) return this.keep(known, found, check, call);
      // A result after the deadline is still cached, unless a later call was faster.
      const kept = Promise.resolve(found).then((answer) => this.keep(known, answer, check, call));
      const late = () =>
        configError('SLUICE_RESOLVE_TIMEOUT', byRequestMessages.slow(`${this.name}.resolve`, this.deadline.ms));
      const pending = this.deadline
        .of(kept, late)
        .catch((error: unknown) => this.fail(known, error, call))
        .finally(() => {
          if (known.pending === pending) known.pending = undefined;
        });
      known.pending = pending;
      return pending;
    } catch (error) {
      return this.fail(known, error, call);
    }
  }

  private keep(known: KnownKey, answer: LimitAnswer, check: CheckAnswer, call: number): LimitAnswer {
    check(answer);
    if (call < known.answered) return answer;
    known.answered = call;
    known.good = answer;
    known.failure = undefined;
    known.until = performance.now() + this.ttlMs;
    return answer;
  }

  /** A failing resolver isn't called again immediately, so that it doesn't delay requests or overload the service behind it. */
  private fail(known: KnownKey, error: unknown, call: number): LimitAnswer {
    known.failure = error;
    const now = performance.now();
    if (call >= known.answered) known.until = now + Math.min(FAILURE_MS, this.ttlMs);
    if (now - this.loggedAt >= LOG_MS) {
      this.loggedAt = now;
      const applies = this.resolver.fallback === undefined ? 'nothing' : 'fallback';
      const text = byRequestMessages.lookUpFailed(this.name, known.good === undefined ? applies : 'last');
      logger.error(text, error instanceof Error ? error.stack : reasonOf(error));
    }
    return this.answerOf(known);
  }

  private answerOf({ good, failure }: KnownKey): LimitAnswer {
    // `null` is also a valid result. It means no limit.
    if (good !== undefined) return good;
    const { fallback } = this.resolver;
    if (fallback === undefined) throw failure;
    return fallback;
  }
}

/** Bounds how long requests wait for functions of the app. */
export class AnswerDeadline {
  private readonly deadline: SharedDeadline;

  constructor(readonly ms: number) {
    this.deadline = new SharedDeadline(ms);
  }

  /** Settles like the promise, or rejects after the deadline. */
  of<T>(promised: PromiseLike<T>, late: () => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = new AwaitedAnswer(() => reject(late()));
      this.deadline.begin(call);
      Promise.resolve(promised)
        .finally(() => this.deadline.end(call))
        .then(resolve, reject);
    });
  }
}

class AwaitedAnswer extends TimedCall {
  constructor(override readonly expire: () => void) {
    super();
  }
}
