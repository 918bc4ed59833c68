import type { Check } from '../store.js';
import { GeneralProgram } from './general-program.js';
import { PlainChecks, USUAL_TIME } from './plain-checks.js';

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
  private plain: PlainChecks | undefined;
  private written: GeneralProgram | undefined;

  /** `now` is the best guess of the server's time in microseconds, which determines the calendar windows to ask for. */
  constructor(
    private readonly prefix: string,
    private readonly now: number,
    private readonly clock?: TestClock,
  ) {}

  get keys(): readonly string[] {
    return this.plain?.keys ?? this.general.allKeys;
  }

  /** The index of each check's reply, if the order differs from that of the checks. */
  get order(): readonly number[] | undefined {
    return this.plain?.order();
  }

  check(check: Check): void {
    const { written } = this;
    if (written !== undefined) written.check(check);
    else if (!this.addPlain(check)) this.general.check(check);
  }

  /** Adds a check, if the fast way can decide it together with everything written so far; returns whether it can. */
  private addPlain(check: Check): boolean {
    if (this.plain !== undefined) return this.plain.add(check);
    this.plain = PlainChecks.of(check, this.prefix);
    return this.plain !== undefined;
  }

  /** The program of the general way, with everything written so far. */
  get general(): GeneralProgram {
    if (this.written === undefined) {
      this.written = new GeneralProgram(this.prefix, this.now);
      for (const check of this.plain?.checks ?? []) this.written.check(check);
      this.plain = undefined;
    }
    return this.written;
  }

  /** The arguments of the script besides the keys. */
  args(): string[] {
    const time = this.clock && [this.clock.now(), this.clock.slackMs];
    if (this.plain !== undefined)
      return this.plain.args(({ algorithm, parameters }) => algorithm.scriptParameters(parameters, this.now), time);
    return [this.general.text(time ?? USUAL_TIME)];
  }
}
