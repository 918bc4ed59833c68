import { Alarm } from './alarm.js';
import type { Waiter } from './waiter.js';

/** Those whose units are taken from the future: each is let go when its time has come, and none before one that came first. */
export class Departures {
  private readonly queue: { readonly waiter: Waiter; readonly at: number }[] = [];
  private alarm: Alarm | undefined;

  constructor(private readonly onEmpty: () => void) {}

  get isEmpty(): boolean {
    return this.queue.length === 0;
  }

  add(waiter: Waiter, delayMs: number): void {
    // Who gives up keeps nobody waiting.
    waiter.decided.catch(() => this.depart());
    this.queue.push({ waiter, at: performance.now() + delayMs });
    if (this.queue.length === 1 || delayMs === 0) this.depart();
  }

  close(reason: Error): void {
    for (const { waiter } of this.queue.splice(0)) waiter.reject(reason);
    this.alarm?.clear();
  }

  private depart(): void {
    this.alarm?.clear();
    const now = performance.now();
    let gone = 0;
    for (const { waiter, at } of this.queue) {
      if (!waiter.isOver && at > now) break;
      waiter.letGo();
      gone++;
    }
    this.queue.splice(0, gone);
    const [next] = this.queue;
    if (next === undefined) this.onEmpty();
    else this.alarm = new Alarm(next.at - now, () => this.depart());
  }
}
