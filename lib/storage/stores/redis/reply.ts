import type { WindowCount } from '../../../engine/algorithms/algorithm.js';
import { messages } from '../../../engine/errors/messages/general.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { readWholeNumber } from '../../redis/errors.js';
import type { LearntRate } from '../lesson.js';
import { claimedDecision } from '../store-decision.js';
import type { Check, StoreDecision } from '../store.js';

/** Marks a check or an operation that was not done. */
const UNDECIDED = -1;
/** Marks units that were claimed before, in place of decisions. */
const CLAIMED = -2;
/** The wait of a rejection that never ends. */
const NEVER = -1;
/** The outcome in the lowest two bits of a decision. The value between these two, 1, means allowed. */
const REFUSED = 0;
const ALLOWED_TO_BE_HELD = 2;
/** If the reply is a single number, it is the first number times this, plus the second. */
const SECOND = 2 ** 20;
/** Offences beyond this number are not counted. */
const MOST_OFFENCES = 255;
/** The cost for which a check that takes as many units as fit is rejected. */
const LEAST_TAKEN = 1;
/** The number of values of one window. */
const WINDOW = 3;

/**
 * Reads the script's reply in the order in which the script decided. Every method throws a `TypeError` for values that the script never
 * returns: a reply that was truncated or garbled on its way must not decide anything.
 */
export class Reply {
  private readonly values: readonly unknown[];
  private at = 0;
  private count = 0;
  /** The server's time in microseconds, once a reply contains it because a calendar window was outdated. */
  serverTime: number | undefined;

  constructor(reply: unknown) {
    const both = readWholeNumber(reply);
    if (both !== undefined) this.values = [Math.floor(both / SECOND), both % SECOND];
    else if (Array.isArray(reply)) this.values = reply;
    else throw new TypeError(messages.noReply(reply));
  }

  /** Throws unless everything has been read. */
  end(): void {
    if (this.count < this.values.length) throw this.wrong(this.count);
  }

  /** The reply to an operation on one counter; `undefined` if it was not done. */
  operation(most = 1): number | undefined {
    return this.undecided() ? undefined : this.next(0, most);
  }

  /** A learned rate; `undefined` if there is none. */
  rate(): LearntRate | undefined {
    return this.undecided() ? undefined : { rate: this.next(1), intervalMs: this.next(1), burst: this.next(1) };
  }

  /** A time in milliseconds, or credits; `undefined` if they were not read. */
  wait(): number | undefined {
    return this.undecided() ? undefined : this.next();
  }

  /** The decisions of a claim, or the decision about units that were claimed before. */
  claim(check: Check): StoreDecision[] | undefined {
    if (readWholeNumber(this.values[this.at]) !== CLAIMED) return this.check(check);
    this.next(CLAIMED);
    return [claimedDecision(check.entries[0]!.limit, this.next(), 'redis')];
  }

  /** The decisions of a check; `undefined` if it was not decided. */
  check({ entries, peek = false, refundable = false, upTo = false }: Check): StoreDecision[] | undefined {
    if (this.undecided()) return undefined;
    const taken = upTo ? this.next(0, entries[0]!.cost) : undefined;
    const decisions = entries.map(({ limit, cost }) =>
      this.decision(limit, taken === undefined ? cost : Math.max(LEAST_TAKEN, taken)),
    );
    if (taken !== undefined) for (const decision of decisions) decision.taken = taken;
    if (refundable && !peek) {
      const chargedAt = this.next();
      for (const decision of decisions) decision.chargedAt = chargedAt;
    }
    return decisions;
  }

  /** The windows of a counter, the newest first; `undefined` if they were not read. */
  history(): WindowCount[] | undefined {
    if (this.undecided()) return undefined;
    const length = this.next(0, Math.floor(this.values.length / WINDOW));
    return Array.from({ length }, () => ({
      start: this.next(),
      end: this.next(),
      count: this.next(),
    })).toReversed();
  }

  private decision(limit: CompiledLimit, cost: number): StoreDecision {
    const { quota, escalation, withholds } = limit;
    const first = this.next();
    const outcome = first % 4;
    const allowed = outcome !== REFUSED;
    if (outcome > ALLOWED_TO_BE_HELD || (allowed && cost > quota && !limit.varies)) throw this.wrong(this.at - 1);
    const decision: StoreDecision = {
      allowed,
      limit: limit.name,
      quota,
      remaining: this.next(0, limit.varies ? undefined : quota),
      retryAfterMs: 0,
      resetAfterMs: (first - outcome) / 4,
      delayMs: 0,
      source: 'redis',
    };
    if (!allowed) {
      const never = cost > quota && !limit.varies;
      // A check may also never fit because features or windows withhold units of the quota.
      const mayBeNever = limit.varies || cost + withholds > quota;
      const wait = this.next(mayBeNever ? NEVER : 0, never ? NEVER : undefined);
      decision.retryAfterMs = wait === NEVER ? Infinity : wait;
    } else if (outcome === ALLOWED_TO_BE_HELD) {
      decision.delayMs = this.next();
      decision.ticket = this.next();
    }
    if (escalation !== undefined) decision.offences = this.next(0, MOST_OFFENCES);
    if (limit.countsRefused) decision.tried = this.next();
    if (limit.varies) {
      decision.quota = this.next(decision.remaining);
      if (limit.takesCredits) decision.credits = this.next(0, decision.quota);
    }
    if (limit.algorithm.notes === true) decision.note = this.next();
    return decision;
  }

  /** Numbers, each at least as large as the given minimum; `undefined` if nothing was done. */
  numbers(least: readonly number[]): number[] | undefined {
    return this.undecided() ? undefined : least.map((each) => this.next(each));
  }

  /** Reads a count, then twice as many numbers. */
  pairs(): number[] {
    const length = 2 * this.next(0, this.values.length);
    return Array.from({ length }, () => this.next());
  }

  private undecided(): boolean {
    const value = this.values[this.at];
    if (value !== UNDECIDED && value !== String(UNDECIDED)) return false;
    this.at++;
    this.count++;
    this.serverTime = this.next();
    return true;
  }

  private next(least = 0, most = Number.MAX_SAFE_INTEGER): number {
    this.count++;
    const value = readWholeNumber(this.values[this.at++]);
    if (value === undefined || value < least || value > most) throw this.wrong(this.at - 1);
    return value;
  }

  private wrong(at = this.at): TypeError {
    return new TypeError(messages.wrongReply(at, this.values[at]));
  }
}
