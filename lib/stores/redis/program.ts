import type { CompiledLimit } from '../../limits/compiled-limit.js';
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
import { type CheckEntry, type Counter, isOfStarts } from '../../limits/counter.js';
import { holdNumbers } from '../../algorithms/hold-terms.js';
import { isHold } from '../store-decision.js';
import {
  claimKeyOf,
  creditIdKeyOf,
  creditsKeyOf,
  extraKeysOf,
  hashTagOf,
  holdsKeyOf,
  keyOf,
  noteKeyOf,
  rateKeyOf,
  recordIndexKey,
  recordKeyOf,
  shareKeyOf,
} from './keys.js';
import type { Lesson } from '../lesson.js';
import {
  BLOCK,
  BLOCKED_FOR,
  CLAIM,
  CONSUME,
  CONSUME_EACH,
  CONSUME_REFUNDABLE,
  CREDIT,
  HISTORY,
  HOLD,
  LEARN,
  LEARN_RATE,
  LINKS,
  PEEK,
  PENALIZE,
  REFUND,
  RELEASE,
  RENEW,
  RESERVE,
  SETTLE,
} from './operations.js';
import { linksOf, mayBorrow } from '../links.js';
import { PlainChecks, USUAL_TIME } from './plain-checks.js';
import { tagBeside } from './slot-tags.js';

const ONLY_LOOK = -1;
const LEARNT_OR_CLAIMED: readonly number[] = [LEARN, LEARN_RATE, RELEASE];
const UNKNOWN = -1;
/** What the program is of, which the script makes no more for than it needs. */
const CHECKS = 0;
const OPERATIONS = -1;
const LESSONS_AND_CLAIMS = -2;
/** Is added to it where a check may borrow. */
const BORROWS = -4;
const NO_TICKET = -1;
const NO_TIME = -1;
/** What stands before the name of a limit's algorithm that records what it charges. */
const RECORDED = '@';
/** Each operation on one counter has so many numbers or more. */
const LEAST_NUMBERS = 3;
const CARRY = { proportional: 1, additive: 2 } as const;

/** The time that the script uses instead of the server's, for tests. */
export interface TestClock {
  /** Whole microseconds since the epoch. */
  now(): number;
  /** Milliseconds added to every time to live, for a clock that is slower than the server's. */
  readonly slackMs: number;
}

/** Checks that follow each other, of the same limits and costs. Each one's keys follow each other, a step after the last one's. */
interface Run {
  /** The limits' numbers and the costs. */
  readonly entries: string;
  /** How many these are. */
  readonly width: number;
  readonly first: number;
  step: number;
  count: number;
}

/** What a reservation asks of its limit, and of the limit's candidate. */
export function reservedEntries(reservation: ReserveEntry): ReserveEntry[] {
  const { candidate } = reservation.limit;
  return candidate === undefined ? [reservation] : [reservation, { ...reservation, limit: candidate }];
}

/** Writes one call of the script: its keys and its program, as `lua/header.lua` describes them. */
export class Program {
  private readonly ownKeys: string[] = [];
  /** All that has been written, while the script's fast way can decide it. */
  private plain: PlainChecks | undefined;
  private isEmpty = true;
  private readonly keyNumbers = new Map<string, number>();
  /** Keys whose counters stay open until the end of the call: more than one check or operation has them. */
  private readonly keptOpen: boolean[] = [];
  private openKeys = '';
  private openKeyCount = 0;
  /** Where counters of limits with `usage` are recorded, by their numbers; nothing if there is no such limit. */
  private records: Map<number, string> | undefined;
  private readonly limitNumbers = new Map<CompiledLimit, number>();
  private limits = '';
  private body = '';
  private run: Run | undefined;
  private kind = CHECKS;
  private borrows = false;

  /** `now` is the best guess of the server's time in microseconds: it says which calendar windows to ask for. */
  constructor(
    private readonly prefix: string,
    private readonly now: number,
    private readonly clock?: TestClock,
  ) {}

  get keys(): readonly string[] {
    return this.plain?.keys ?? this.ownKeys;
  }

  /** The place of each check's reply among the replies, if it is another than that of the check. */
  get order(): readonly number[] | undefined {
    return this.plain?.order();
  }

  check(check: Check): void {
    if (this.isEmpty) this.plain = PlainChecks.of(check, this.prefix);
    else if (this.plain?.add(check) !== true) this.endPlain();
    if (this.plain === undefined) this.checkAny(check);
    this.isEmpty = false;
  }

  /** All that has been written is written anew, for the script's general way. */
  private endPlain(): void {
    const checks = this.plain?.checks ?? [];
    this.plain = undefined;
    this.isEmpty = false;
    for (const check of checks) this.checkAny(check);
  }

  private checkAny({ entries, peek = false, refundable = false, hold = false }: Check): void {
    const limits: number[] = [];
    const keys: number[] = [];
    let limitsAndCosts = '';
    const borrows = mayBorrow(entries);
    let isRun = !peek && !refundable && !hold && !borrows;
    for (const entry of entries) {
      const limit = this.limit(entry.limit);
      const key = this.key(entry);
      // One state serves counter after counter of a limit, but not two of one check.
      if (limits.includes(limit)) this.keepOpen(key);
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
    if (borrows) this.link(entries);
    this.body += `,${peek ? PEEK : hold ? HOLD : refundable ? CONSUME_REFUNDABLE : CONSUME},${entries.length}`;
    for (const [index, { cost }] of entries.entries()) this.body += `,${limits[index]},${keys[index]},${cost}`;
  }

  /** Says who of the check that follows is within whom, and how much may be borrowed. */
  private link(entries: readonly CheckEntry[]): void {
    const links = linksOf(entries);
    this.borrows = true;
    this.body += `,${LINKS},${links.length}`;
    for (const { entry, parent } of links) {
      const { above, kept } = entries[entry]!.limit;
      this.body += `,${entry + 1},${parent + 1},${above},${kept}`;
    }
  }

  reserve(reservation: ReserveEntry): void {
    this.endPlain();
    this.endRun();
    const entries = reservedEntries(reservation);
    this.body += `,${RESERVE},${entries.length}`;
    for (const entry of entries) {
      const micros = Math.floor(entry.maxWaitMs * 1000);
      this.body += `,${this.limit(entry.limit)},${this.key(entry)},${entry.cost},${micros}`;
    }
  }

  /** A reservation that is made once, or only looked for. */
  claim(reservation: ReserveEntry, { id, keepMs, looks = false }: Claim): void {
    this.endPlain();
    this.endRun();
    const entries = reservedEntries(reservation);
    this.kind = LESSONS_AND_CLAIMS;
    this.body += `,${CLAIM},${entries.length}`;
    for (const entry of entries) {
      const micros = looks ? ONLY_LOOK : Math.floor(entry.maxWaitMs * 1000);
      const key = this.key(entry);
      const claim = this.keyNumber(claimKeyOf(keyOf(this.prefix, entry), id));
      this.body += `,${this.limit(entry.limit)},${key},${entry.cost},${micros},${claim},${Math.round(keepMs * 1000)}`;
    }
  }

  refund(refund: Refund): void {
    const { units, ticket = NO_TICKET, chargedAt = NO_TIME, actual = 0, claim } = refund;
    if (claim !== undefined) {
      const key = this.keyNumber(claimKeyOf(keyOf(this.prefix, refund), claim.id));
      this.operation(RELEASE, refund, key, claim.isSpent ? 0 : 1);
    } else if (isHold(refund)) {
      this.operation(SETTLE, refund, units, ticket, chargedAt, actual);
    } else {
      this.operation(REFUND, refund, units, ticket, chargedAt);
    }
  }

  credit(credit: Credit): void {
    const { units, id } = credit;
    const key = id === undefined ? 0 : this.keyNumber(creditIdKeyOf(this.prefix, credit, id));
    this.operation(CREDIT, { ...credit, limit: credit.limit.whole }, units, key, CREDIT_KNOWN_FOR);
  }

  penalize(charge: Charge): void {
    // Who may take less than all still owes all that was used.
    this.operation(PENALIZE, { ...charge, limit: charge.limit.whole }, charge.units);
  }

  block(counter: Counter, durationMs: number): void {
    this.operation(BLOCK, counter, Math.round(durationMs * 1000));
  }

  learn(counter: Counter, lesson: Lesson): void {
    const { remaining, resetAfterMs, ageMs, window, inFlight, instance, blockMs, asking = 0, rate } = lesson;
    const key = keyOf(this.prefix, counter);
    const note = this.keyNumber(noteKeyOf(key));
    const learnt = [note, remaining ?? UNKNOWN, micros(resetAfterMs), micros(ageMs), window ?? UNKNOWN];
    learnt.push(inFlight, instance, micros(blockMs), asking);
    if (rate === undefined) {
      this.operation(LEARN, counter, ...learnt);
      return;
    }
    const { quota, windowMs, accepted, refused, largest, slowestMs } = rate;
    learnt.push(this.keyNumber(rateKeyOf(key)), quota ?? UNKNOWN, micros(windowMs), accepted, refused ? 1 : 0, largest);
    this.operation(LEARN_RATE, counter, ...learnt, micros(slowestMs));
  }

  renew(lease: HeldLease): void {
    this.operation(RENEW, lease, lease.units, lease.ticket);
  }

  history(counter: Counter): void {
    this.operation(HISTORY, counter);
  }

  blockedFor(counter: Counter): void {
    this.operation(BLOCKED_FOR, counter);
  }

  /** A check whose keys follow each other. */
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
    this.body += `,${CONSUME_EACH},${width},${count},${first},${step}${entries}`;
    this.run = undefined;
  }

  private operation(operation: number, counter: Counter, ...numbers: number[]): void {
    this.endPlain();
    this.endRun();
    while (numbers.length < LEAST_NUMBERS) numbers.push(0);
    this.kind = Math.min(this.kind, LEARNT_OR_CLAIMED.includes(operation) ? LESSONS_AND_CLAIMS : OPERATIONS);
    this.body += `,${operation},1,${this.limit(counter.limit)},${this.key(counter)},${numbers.join(',')}`;
  }

  /** What the script is called with besides the keys. */
  args(): string[] {
    const time = this.clock && [this.clock.now(), this.clock.slackMs];
    if (this.plain !== undefined) return this.plain.args((limit) => this.parametersOf(limit), time);
    this.endRun();
    const limits = `${this.limitNumbers.size}${this.limits}`;
    const open = `${this.openKeyCount}${this.openKeys}`;
    const records = this.records === undefined ? '' : `,${[this.records.size, ...this.records.values()].join(',')}`;
    const kind = this.borrows ? this.kind + BORROWS : this.kind;
    return [`[${kind},${(time ?? USUAL_TIME).join(',')},${limits},${open}${records}${this.body}]`];
  }

  private limit(limit: CompiledLimit): number {
    const known = this.limitNumbers.get(limit);
    if (known !== undefined) return known;
    const { algorithm, parameters, shadow, blockFor, escalation, carry, tenant, usage } = limit;
    const values: (number | string)[] = this.parametersOf(limit);
    if (limit.isShared) values.push(tenant?.weight ?? 0, JSON.stringify(tenant?.id ?? ''));
    // One number more than the parameters is the whole of the quota.
    if (limit.whole !== limit) values.push(limit.whole.quota);
    if (usage !== undefined) {
      const { start, end } = usage.days.windowAt(this.now);
      values.push(usage.keep, start, end);
      this.records ??= new Map();
    }
    const recorded = usage === undefined ? '' : RECORDED;
    const name = `"${recorded}${algorithm.scriptPrefix ?? ''}${algorithm.script ?? algorithm.name}"`;
    const common = [name, shadow ? 1 : 0, parameters.quota];
    common.push(escalation === undefined ? blockFor : -escalation.steps.length);
    common.push(carry === undefined ? 0 : CARRY[carry.mode], carry?.quotaBefore ?? 0);
    this.limits += `,${[...common, values.length, ...values].join(',')}`;
    if (escalation !== undefined) this.limits += `,${escalation.forgetAfter},${escalation.steps.join(',')}`;
    const number = this.limitNumbers.size + 1;
    this.limitNumbers.set(limit, number);
    return number;
  }

  private parametersOf({ algorithm, parameters, hold }: CompiledLimit): number[] {
    const numbers = algorithm.scriptParameters(parameters, this.now);
    return hold === undefined ? numbers : [...numbers, ...holdNumbers(hold)];
  }

  private key(counter: Counter): number {
    const key = keyOf(this.prefix, counter);
    const known = this.keyNumbers.get(key);
    if (known !== undefined) {
      this.keepOpen(known);
      // A limit without holds, or another tenant's, may have come first.
      this.declareBeside(key, counter, known);
      return known;
    }
    const number = this.ownKeys.push(key);
    this.keyNumbers.set(key, number);
    this.ownKeys.push(...extraKeysOf(key, counter));
    this.declareBeside(key, counter, number);
    return number;
  }

  /** What is held of a counter has a key of its own beside it, and so have each of its tenants, its credits and what it was charged. */
  private declareBeside(key: string, counter: Counter, number: number): void {
    const { hold, tenant, usage, takesCredits } = counter.limit;
    if (takesCredits) this.keyNumber(creditsKeyOf(this.prefix, counter));
    if (hold !== undefined) this.keyNumber(holdsKeyOf(key));
    if (tenant !== undefined) this.keyNumber(shareKeyOf(key, tenant));
    if (usage === undefined || isOfStarts(counter) || this.records?.has(number) === true) return;
    const tag = hashTagOf(counter);
    const record = this.keyNumber(recordKeyOf(this.prefix, counter));
    const index = this.keyNumber(recordIndexKey(this.prefix, counter.limit, tagBeside(tag)));
    this.records ??= new Map();
    this.records.set(number, `${number},${record},${index},${JSON.stringify(tag)}`);
  }

  /** The number of a key that holds no counter. */
  private keyNumber(key: string): number {
    const known = this.keyNumbers.get(key);
    if (known !== undefined) return known;
    const number = this.ownKeys.push(key);
    this.keyNumbers.set(key, number);
    return number;
  }

  private keepOpen(key: number): void {
    if (this.keptOpen[key] === true) return;
    this.keptOpen[key] = true;
    this.openKeys += `,${key}`;
    this.openKeyCount++;
  }
}

function micros(ms: number | undefined): number {
  return ms === undefined ? UNKNOWN : Math.round(ms * 1000);
}
