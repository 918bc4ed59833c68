import { type Counter, togetherOf } from '../../../engine/limits/counter.js';
import type { Lesson } from '../lesson.js';
import { isEstimate } from '../store-decision.js';
import {
  type Charge,
  type Check,
  type Claim,
  type Credit,
  CREDIT_KNOWN_FOR,
  type HeldLease,
  type Refund,
  type ReserveEntry,
} from '../store.js';
import { claimKeyOf, creditIdKeyOf, keyOf, noteKeyOf, rateKeyOf } from './keys.js';
import * as code from './operations.js';
import { ProgramKeys, ProgramLimits } from './program-parts.js';

const ONLY_LOOK = -1;
const LEARNT_OR_CLAIMED: readonly number[] = [code.LEARN, code.LEARN_RATE, code.RELEASE];
const UNKNOWN = -1;
/** The kinds of programs. The script only sets up the parts that a kind needs. */
const CHECKS = 0;
const OPERATIONS = -1;
const LESSONS_AND_CLAIMS = -2;
const NO_TICKET = -1;
const NO_TIME = -1;
/** The minimum number of values for an operation on one counter. */
const LEAST_NUMBERS = 3;

/**
 * Consecutive checks of the same limits and costs. The keys of each check follow each other, one step after those of the previous check.
 */
interface Run {
  /** The limits' numbers and the costs. */
  readonly entries: string;
  /** The number of entries. */
  readonly width: number;
  readonly first: number;
  step: number;
  count: number;
}

/**
 * An operation of a feature: the name of its fragment, its extra keys, and its arguments, which are derived from the numbers of these keys.
 */
export interface FeatureCall {
  readonly name: string;
  readonly keys: readonly string[];
  values(keys: readonly number[]): readonly (number | string)[];
}

/** A call of the script's general way: checks of any limits, and operations on single counters. */
export class GeneralProgram {
  private readonly keys: ProgramKeys;
  private readonly limits: ProgramLimits;
  private body = '';
  private run: Run | undefined;
  private kind = CHECKS;

  /** `now` is the best guess of the server's time in microseconds. It determines the calendar windows. */
  constructor(
    private readonly prefix: string,
    now: number,
  ) {
    this.keys = new ProgramKeys(prefix);
    this.limits = new ProgramLimits(now);
  }

  get allKeys(): readonly string[] {
    return this.keys.all;
  }

  check({ entries, peek = false, refundable = false, hold = false, waits = false, upTo = false }: Check): void {
    const limits: number[] = [];
    const keys: number[] = [];
    let limitsAndCosts = '';
    const together = togetherOf(entries);
    let isRun = !peek && !refundable && !hold && !waits && !upTo && together === undefined;
    for (const entry of entries) {
      const limit = this.limits.of(entry.limit);
      const key = this.keys.ofCounter(entry);
      // One state can serve the counters of a limit one after another, but not two of one check.
      if (limits.includes(limit)) this.keys.keepOpen(key);
      isRun &&= keys.length === 0 || key === keys[0]! + keys.length;
      limitsAndCosts += `,${limit},${entry.cost}`;
      limits.push(limit);
      keys.push(key);
    }
    if (isRun) {
      this.consume(limitsAndCosts, keys);
      return;
    }
    this.endRun();
    if (together !== undefined) {
      const numbers = together.numbers(entries);
      this.body += `,${[code.TOGETHER, numbers.length, `"${together.name}"`, ...numbers].join(',')}`;
    }
    if (upTo) this.body += `,${code.UP_TO},0`;
    const charging = waits ? code.CONSUME_WAITING : refundable ? code.CONSUME_REFUNDABLE : code.CONSUME;
    this.body += `,${peek ? code.PEEK : hold ? code.HOLD : charging},${entries.length}`;
    for (const [index, { cost }] of entries.entries()) this.body += `,${limits[index]},${keys[index]},${cost}`;
  }

  /** Reservations of units of a limit and its candidate. With a claim they are made only once, or only read. */
  reserve(entries: readonly ReserveEntry[], claim: Claim | undefined): void {
    this.endRun();
    if (claim !== undefined) this.kind = LESSONS_AND_CLAIMS;
    this.body += `,${claim === undefined ? code.RESERVE : code.CLAIM},${entries.length}`;
    for (const entry of entries) {
      const micros = claim?.looks === true ? ONLY_LOOK : Math.floor(entry.maxWaitMs * 1000);
      this.body += `,${this.limits.of(entry.limit)},${this.keys.ofCounter(entry)},${entry.cost},${micros}`;
      if (claim === undefined) continue;
      const key = this.keys.of(claimKeyOf(keyOf(this.prefix, entry), claim.id));
      this.body += `,${key},${Math.round(claim.keepMs * 1000)}`;
    }
  }

  refund(refund: Refund): void {
    const { units, ticket = NO_TICKET, chargedAt = NO_TIME, actual = 0, claim } = refund;
    if (claim !== undefined) {
      const key = this.keys.of(claimKeyOf(keyOf(this.prefix, refund), claim.id));
      this.operation(code.RELEASE, refund, key, claim.isSpent ? 0 : 1);
    } else if (isEstimate(refund)) {
      this.operation(code.SETTLE, refund, units, ticket, chargedAt, actual);
    } else {
      this.operation(code.REFUND, refund, units, ticket, chargedAt);
    }
  }

  credit(credit: Credit): void {
    const { units, id } = credit;
    const key = id === undefined ? 0 : this.keys.of(creditIdKeyOf(this.prefix, credit, id));
    this.operation(code.CREDIT, { ...credit, limit: credit.limit.whole }, units, key, CREDIT_KNOWN_FOR);
  }

  penalize(charge: Charge): void {
    // Even if a key may only take a part of the quota, it owes everything that was used.
    this.operation(code.PENALIZE, { ...charge, limit: charge.limit.whole }, charge.units);
  }

  block(counter: Counter, durationMs: number): void {
    this.operation(code.BLOCK, counter, Math.round(durationMs * 1000));
  }

  learn(counter: Counter, lesson: Lesson): void {
    const { remaining, resetAfterMs, ageMs, window, inFlight, instance, blockMs, asking = 0, rate } = lesson;
    const key = keyOf(this.prefix, counter);
    const note = this.keys.of(noteKeyOf(key));
    const learnt = [note, remaining ?? UNKNOWN, micros(resetAfterMs), micros(ageMs), window ?? UNKNOWN];
    learnt.push(inFlight, instance, micros(blockMs), asking);
    if (rate === undefined) {
      this.operation(code.LEARN, counter, ...learnt, lesson.quota ?? UNKNOWN);
      return;
    }
    const { quota, windowMs, accepted, refused, largest, slowestMs } = rate;
    learnt.push(this.keys.of(rateKeyOf(key)), quota ?? UNKNOWN, micros(windowMs), accepted, refused ? 1 : 0, largest);
    this.operation(code.LEARN_RATE, counter, ...learnt, micros(slowestMs));
  }

  renew(lease: HeldLease): void {
    this.operation(code.RENEW, lease, lease.units, lease.ticket);
  }

  history(counter: Counter): void {
    this.operation(code.HISTORY, counter);
  }

  blockedFor(counter: Counter): void {
    this.operation(code.BLOCKED_FOR, counter);
  }

  /** Adds an operation of a feature on a counter. */
  ofFeature(counter: Counter, call: FeatureCall): void {
    const numbers = call.keys.map((key) => this.keys.of(key));
    const texts = [JSON.stringify(call.name), ...call.values(numbers).map((value) => JSON.stringify(value))];
    this.endRun();
    this.kind = Math.min(this.kind, OPERATIONS);
    const target = `${this.limits.of(counter.limit)},${this.keys.ofCounter(counter)}`;
    this.body += `,${code.OF_FEATURE},1,${target},${texts.length},${texts.join(',')}`;
  }

  /** Adds a check whose keys follow each other. */
  private consume(limitsAndCosts: string, keys: readonly number[]): void {
    const first = keys[0]!;
    const { run } = this;
    if (run?.entries === limitsAndCosts) {
      if (run.count === 1) run.step = first - run.first;
      if (run.step >= 0 && first === run.first + run.step * run.count) {
        run.count++;
        return;
      }
    }
    this.endRun();
    this.run = { entries: limitsAndCosts, width: keys.length, first, step: 0, count: 1 };
  }

  private endRun(): void {
    if (this.run === undefined) return;
    const { entries, width, first, step, count } = this.run;
    this.body += `,${code.CONSUME_EACH},${width},${count},${first},${step}${entries}`;
    this.run = undefined;
  }

  private operation(operation: number, counter: Counter, ...numbers: number[]): void {
    this.endRun();
    while (numbers.length < LEAST_NUMBERS) numbers.push(0);
    this.kind = Math.min(this.kind, LEARNT_OR_CLAIMED.includes(operation) ? LESSONS_AND_CLAIMS : OPERATIONS);
    this.body += `,${operation},1,${this.limits.of(counter.limit)},${this.keys.ofCounter(counter)},${numbers.join(',')}`;
  }

  /** `time` is the current time and the slack, as described in lua/header.lua. */
  text(time: readonly number[]): string {
    this.endRun();
    const { keys, limits } = this;
    return `[${this.kind},${time.join(',')},${limits.all},${keys.open},${keys.allBeside}${this.body}]`;
  }
}

function micros(ms: number | undefined): number {
  return ms === undefined ? UNKNOWN : Math.round(ms * 1000);
}
