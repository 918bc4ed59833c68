/** How often requests are sent that are due, in milliseconds. */
const TICK = 50;

/** Calls something so many times a second, evenly. What a page in the background missed is not made up for. */
export class Flow {
  private readonly timer: ReturnType<typeof setInterval>;
  private last = performance.now();
  private due = 1;

  constructor(
    readonly perSecond: number,
    private readonly next: () => void,
  ) {
    this.timer = setInterval(() => this.tick(), TICK);
    this.tick();
  }

  end(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    const now = performance.now();
    this.due = Math.min(this.due + ((now - this.last) / 1000) * this.perSecond, Math.max(1, this.perSecond / 4));
    this.last = now;
    for (; this.due >= 1; this.due--) this.next();
  }
}
