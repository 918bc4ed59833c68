import type { Check } from '../store.js';
import { GeneralProgram } from './general-program.js';
import { AlikeChecks } from './fast-way/alike-checks.js';
import { ChecksInRows } from './fast-way/checks-in-rows.js';
import { GroupedChecks } from './fast-way/grouped-checks.js';
import { type FastChecks, isPlainCheck, USUAL_TIME } from './fast-way/plain-checks.js';

/** The formats of the fast way, the fastest first. */
const FAST_WAYS = [AlikeChecks, GroupedChecks, ChecksInRows];

/** The time that the script uses instead of the server's, for tests. */
export interface TestClock {
  /** Whole microseconds since the epoch. */
  now(): number;
  /** Milliseconds added to every time to live, for a clock that is slower than the server's. */
  readonly slackMs: number;
}

/**
 * Writes one call of the script: its keys and its program, as documented in `lua/header.lua`. Checks are written in a format of the fast
 * way until one doesn't fit; then everything is written in the general way.
 */
export class Program {
  private fast: FastChecks | undefined;
  /** The number of formats that were tried. */
  private ways = 0;
  private written: GeneralProgram | undefined;

  /** `now` is the best guess of the server's time in microseconds. It determines the calendar windows. */
  constructor(
    private readonly prefix: string,
    private readonly now: number,
    private readonly clock?: TestClock,
  ) {}

  get keys(): readonly string[] {
    return this.fast?.keys ?? this.general.allKeys;
  }

  /** The index of each reply's check; `undefined` if the replies are in the order of the checks. */
  get order(): readonly number[] | undefined {
    return this.fast?.order();
  }

  check(check: Check): void {
    if (this.written !== undefined) this.written.check(check);
    else if (this.fast?.add(check) !== true && !this.addAnotherWay(check)) this.general.check(check);
  }

  /** Adds a check and writes all checks in another format of the fast way. Returns true if one fits. */
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

  /** The program in the general way, with everything written so far. */
  get general(): GeneralProgram {
    if (this.written === undefined) {
      this.written = new GeneralProgram(this.prefix, this.now);
      for (const check of this.fast?.checks ?? []) this.written.check(check);
      this.fast = undefined;
    }
    return this.written;
  }

  /** The script's arguments, without the keys. */
  args(): string[] {
    const time = this.clock && [this.clock.now(), this.clock.slackMs];
    if (this.fast !== undefined)
      return this.fast.args(({ algorithm, parameters }) => algorithm.scriptParameters(parameters, this.now), time);
    return [this.general.text(time ?? USUAL_TIME)];
  }
}
