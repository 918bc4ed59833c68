import type { Check } from '../store.js';
import { GeneralProgram } from './general-program.js';
import { AlikeChecks } from './fast-way/alike-checks.js';
import { ChecksInRows } from './fast-way/checks-in-rows.js';
import { GroupedChecks } from './fast-way/grouped-checks.js';
import { type FastChecks, isPlainCheck, USUAL_TIME } from './fast-way/plain-checks.js';

/** How the fast way may be written, the fastest first. */
const FAST_WAYS = [AlikeChecks, GroupedChecks, ChecksInRows];

/** The time that the script uses instead of the server's, for tests. */
export interface TestClock {
  /** Whole microseconds since the epoch. */
  now(): number;
  /** Milliseconds added to every time to live, for a clock that is slower than the server's. */
  readonly slackMs: number;
}

/**
 * Writes one call of the script: its keys and its program, as `lua/header.lua` documents them. Checks are written for the
 * script's fast way, until something comes that does not fit there: then everything is written for the general way.
 */
export class Program {
  private fast: FastChecks | undefined;
  /** How many of the fast ways were tried. */
  private ways = 0;
  private written: GeneralProgram | undefined;

  /** `now` is the best guess of the server's time in microseconds, which determines the calendar windows to ask for. */
  constructor(
    private readonly prefix: string,
    private readonly now: number,
    private readonly clock?: TestClock,
  ) {}

  get keys(): readonly string[] {
    return this.fast?.keys ?? this.general.allKeys;
  }

  /** The index of each reply's check; nothing if the replies come in the order of the checks. */
  get order(): readonly number[] | undefined {
    return this.fast?.order();
  }

  check(check: Check): void {
    if (this.written !== undefined) this.written.check(check);
    else if (this.fast?.add(check) !== true && !this.addAnotherWay(check)) this.general.check(check);
  }

  /** Adds a check to all those before it, written another fast way; returns whether there is one. */
  private addAnotherWay(check: Check): boolean {
    if (!isPlainCheck(check)) return false;
    const before = this.fast?.checks ?? [];
    while (this.ways < FAST_WAYS.length) {
      const way = new FAST_WAYS[this.ways++]!(this.prefix);
      if (before.every((each) => way.add(each)) && way.add(check)) {
        this.fast = way;
        return true;
      }
    }
    return false;
  }

  /** The program of the general way, with everything written so far. */
  get general(): GeneralProgram {
    if (this.written === undefined) {
      this.written = new GeneralProgram(this.prefix, this.now);
      for (const check of this.fast?.checks ?? []) this.written.check(check);
      this.fast = undefined;
    }
    return this.written;
  }

  /** The arguments of the script besides the keys. */
  args(): string[] {
    const time = this.clock && [this.clock.now(), this.clock.slackMs];
    if (this.fast !== undefined)
      return this.fast.args(({ algorithm, parameters }) => algorithm.scriptParameters(parameters, this.now), time);
    return [this.general.text(time ?? USUAL_TIME)];
  }
}
