/**
 * What plans, holds and usage should do by the guides, told as naively as possible: a list of all that was ever charged, and sums. Of one
 * key, and a clock that goes forward. Times are whole microseconds.
 */
export interface PlanTerms {
  /** The window that a time is in; nothing of windows that open with their first request. */
  readonly windowAt?: (time: number) => Span;
  /** How long a window lasts that opens with its first request. */
  readonly interval: number;
  /** The share of what is left that moves on. */
  readonly rollover: number;
  readonly credits: boolean;
  readonly retain: number;
  /** How long a reservation is held. */
  readonly hold: number;
}

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What can change at any time. */
export interface Settings {
  readonly rate: number;
  readonly releases: boolean;
}

/** What a request would be told now. */
export interface Told {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly quota: number;
  readonly credits: number;
  /** Until it would be allowed, if nobody else asks. */
  readonly wait: number;
}

interface Window extends Span {
  count: number;
  /** What moved here. */
  readonly moved: number;
  /** The rate of the last charge; and the smallest one, if there was any. */
  rate: number;
  least: number | undefined;
  /** What was counted when it ended: what is left of it moves on. */
  counted?: number;
}

interface Charge {
  readonly at: number;
  readonly window: Window;
  /** Those of a hold may still become others. */
  readonly units: number;
  readonly hold?: { readonly lapsesAt: number; readonly releases: boolean; state: 'held' | 'lapsed' | 'settled' };
}

const DAY = 86_400_000_000;
const HOUR = 3_600_000_000;

/** All that is known of a key. */
interface Book {
  now: number;
  /** All windows that were ever charged, the last one at the end. */
  windows: Window[];
  /** Forgotten at a reset. */
  charges: Charge[];
  /** Credits that are left, without what the running window used of them. */
  balance: number;
  readonly ids: Map<string, number>;
  /** Units by the day of their charge. */
  readonly days: Map<number, number>;
}

export class PlanModel {
  private book: Book = { now: 0, windows: [], charges: [], balance: 0, ids: new Map(), days: new Map() };

  constructor(
    private readonly terms: PlanTerms,
    public settings: Settings,
  ) {}

  /** Time passes: holds lapse, and windows end. */
  pass(now: number): void {
    const { book } = this;
    for (;;) {
      const ends = this.running?.end ?? Infinity;
      const [next] = book.charges
        .filter(({ hold }) => hold?.state === 'held')
        .toSorted((one, other) => one.hold!.lapsesAt - other.hold!.lapsesAt);
      const lapses = next?.hold!.lapsesAt ?? Infinity;
      if (Math.min(ends, lapses) > now) break;
      if (ends <= lapses) this.endWindow();
      else this.lapse(next!);
    }
    book.now = now;
  }

  /** Charges a cost if it fits. Returns the number of the charge. */
  charge(cost: number, isHeld: boolean): number | undefined {
    if (!this.fits(cost)) return undefined;
    const { now, charges } = this.book;
    const { hold } = this.terms;
    const window = this.use();
    this.learn(window);
    window.count += cost;
    this.addToDay(now, cost);
    const held = { lapsesAt: now + hold, releases: this.settings.releases, state: 'held' as const };
    return charges.push({ at: now, window, units: cost, ...(isHeld && { hold: held }) }) - 1;
  }

  /** What is told of a cost now. */
  look(cost: number): Told {
    const { moved, count } = this.seen();
    const quota = this.settings.rate + moved + this.gross();
    return {
      allowed: this.fits(cost),
      remaining: Math.max(0, quota - count),
      quota,
      credits: this.creditsLeft(),
      wait: this.waitFor(cost),
    };
  }

  /** Replaces what was reserved by what was used, once. */
  settle(number: number, actual: number): void {
    const charge = this.book.charges[number];
    if (charge?.hold === undefined || charge.hold.state === 'settled') return;
    const { hold, at, window, units } = charge;
    const cameBack = hold.state === 'lapsed' && hold.releases;
    hold.state = 'settled';
    this.correct(window, at, actual - (cameBack ? 0 : units));
  }

  /** Gives back units of a charge that is no reservation: in its window while that runs, and on its day. */
  giveBack(number: number, units: number): void {
    const { window, at } = this.book.charges[number]!;
    if (window === this.running) this.correct(window, at, -units);
    else this.addToDay(at, -units);
  }

  /** Gives back units that were charged nobody says when. */
  refund(units: number): void {
    const { running } = this;
    if (running !== undefined) running.count = Math.max(0, running.count - units);
    let left = units;
    for (const day of [...this.book.days.keys()].toSorted((one, other) => other - one)) {
      const given = Math.min(left, this.book.days.get(day)!);
      this.book.days.set(day, this.book.days.get(day)! - given);
      left -= given;
    }
  }

  penalize(units: number): void {
    const window = this.use();
    this.learn(window);
    window.count += units;
    this.addToDay(this.book.now, units);
  }

  /** Forgets what was counted and is held, and leaves the credits. */
  reset(): void {
    this.book.balance = this.creditsLeft();
    this.book.windows = [];
    this.book.charges = [];
  }

  /** Adds credits, or takes back what is left of so many. Returns what is left. */
  credit(units: number, id?: string): number {
    const { ids, now } = this.book;
    const isKnown = id !== undefined && ids.has(id) && ids.get(id)! > now;
    if (!isKnown) {
      if (id !== undefined) ids.set(id, now + 35 * DAY);
      this.book.balance += Math.max(units, -this.creditsLeft());
    }
    return this.creditsLeft();
  }

  /** Units by day, those that have any. */
  usage(): { day: string; units: number }[] {
    return [...this.book.days]
      .filter(([, units]) => units > 0)
      .toSorted(([one], [other]) => one - other)
      .map(([day, units]) => ({ day: new Date(day * (DAY / 1000)).toISOString().slice(0, 10), units }));
  }

  /** Windows that can be read and have any units, the newest first. */
  history(): { start: number; count: number }[] {
    const { windows, now } = this.book;
    return windows
      .filter(({ end, count }) => count > 0 && end + this.terms.retain > now)
      .map(({ start, count }) => ({ start: start / 1000, count }))
      .toReversed();
  }

  /** A window that opens with its first request is none where nothing counts in it, or may count again. */
  forgetEmpty(): void {
    const { running } = this;
    if (this.terms.windowAt !== undefined || running === undefined || running.count > 0) return;
    const isHeld = this.book.charges.some(({ window, hold }) => window === running && hold && hold.state !== 'settled');
    if (!isHeld) running.counted = 0;
  }

  /** How many charges there are. */
  get size(): number {
    return this.book.charges.length;
  }

  /** What a charge was, and until when it matters: it lapses, and its window ends or is read no longer. */
  chargeAt(number: number): { units: number; isHeld: boolean; until: number } {
    const { units, hold, window } = this.book.charges[number]!;
    const isHeld = hold !== undefined;
    const { retain } = this.terms;
    // Of a window in which nothing was left when it ended nothing can be read.
    const until = window.counted === 0 && retain > 0 ? window.end : Math.max(window.end + retain, hold?.lapsesAt ?? 0);
    return { units, isHeld, until };
  }

  /** Whether the running window was charged under the present rate, or there is none. */
  get knowsRate(): boolean {
    return this.running === undefined || this.running.rate === this.settings.rate;
  }

  get running(): Window | undefined {
    const last = this.book.windows.at(-1);
    return last?.counted === undefined ? last : undefined;
  }

  /** The running window, or the one that would begin now. */
  private seen(): Window {
    if (this.running !== undefined) return this.running;
    const { now } = this.book;
    const { windowAt, interval } = this.terms;
    const span = windowAt?.(now) ?? { start: now, end: now + interval };
    const { rate } = this.isKnown(span) ? this.book.windows.at(-1)! : this.settings;
    return { ...span, count: 0, moved: this.movedInto(span), rate, least: undefined };
  }

  private use(): Window {
    const window = this.seen();
    if (window !== this.running) this.book.windows.push(window);
    return window;
  }

  private isKnown({ start }: Span): boolean {
    const last = this.book.windows.at(-1);
    const { windowAt, rollover } = this.terms;
    if (rollover === 0 || last === undefined || windowAt === undefined) return false;
    return last.start >= windowAt(windowAt(start - 1).start - 1).start;
  }

  private learn(window: Window): void {
    const { rate } = this.settings;
    window.rate = rate;
    window.least = window.count === 0 ? rate : Math.min(rate, window.least ?? rate);
  }

  /** A share of what is left of the window before, or of a silent one. */
  private movedInto({ start }: Span): number {
    const last = this.book.windows.at(-1);
    const { windowAt, rollover } = this.terms;
    if (last === undefined || windowAt === undefined) return 0;
    const { rate } = this.settings;
    const before = windowAt(start - 1);
    const share = (units: number) => Math.floor(rollover * units);
    if (last.start === before.start) {
      const used = Math.max(0, last.counted! - last.moved);
      return share(Math.max(0, Math.min(rate, last.least ?? last.rate) - used));
    }
    return last.start === windowAt(before.start - 1).start ? share(Math.min(rate, last.rate)) : 0;
  }

  /** Credits that are left or used in this window. */
  private gross(): number {
    return this.terms.credits ? this.book.balance : 0;
  }

  private spentUnder(rate: number, { count, moved }: Window): number {
    return Math.max(0, Math.min(this.gross(), count - rate - moved));
  }

  private creditsLeft(): number {
    return this.gross() - this.spentUnder(this.settings.rate, this.seen());
  }

  private fits(cost: number): boolean {
    const { count, moved } = this.seen();
    return count + cost <= this.settings.rate + moved + this.gross();
  }

  /** The first time at which it fits, of all at which anything changes. */
  private waitFor(cost: number): number {
    if (this.fits(cost)) return 0;
    const { charges, now } = this.book;
    const { windowAt, interval } = this.terms;
    const times = charges.flatMap(({ hold }) => (hold?.state === 'held' ? [hold.lapsesAt] : []));
    let { end } = this.seen();
    for (let windows = 0; windows < 3; windows++) {
      times.push(end);
      end = windowAt?.(end).end ?? end + interval;
    }
    const kept = this.book;
    try {
      for (const time of [...new Set(times)].toSorted((one, other) => one - other)) {
        this.book = structuredClone(kept);
        this.pass(time);
        if (this.fits(cost)) return time - now;
      }
    } finally {
      this.book = kept;
    }
    return Infinity;
  }

  private endWindow(): void {
    const window = this.running!;
    this.book.balance -= this.spentUnder(window.rate, window);
    window.counted = window.count;
  }

  private lapse({ at, units, window, hold }: Charge): void {
    hold!.state = 'lapsed';
    if (hold!.releases) this.correct(window, at, -units);
  }

  /** Changes what counts in the window of a charge, and on its day. */
  private correct(window: Window, at: number, difference: number): void {
    window.count = Math.max(0, window.count + difference);
    this.addToDay(at, difference);
  }

  private addToDay(at: number, difference: number): void {
    const { days } = this.book;
    const day = Math.floor(at / DAY);
    days.set(day, Math.max(0, (days.get(day) ?? 0) + difference));
  }
}

/** Windows of a day that begin at an hour. */
export function daysFrom(hour: number): (time: number) => Span {
  return (time) => {
    const start = Math.floor((time - hour * HOUR) / DAY) * DAY + hour * HOUR;
    return { start, end: start + DAY };
  };
}
