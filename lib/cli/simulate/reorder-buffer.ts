import type { LoggedRequest } from './logged-request.js';

/** So many requests are held back at most. */
const MOST_HELD = 100_000;

/** A request that came late, and its place among those of one time: behind all that came in order. */
interface Late {
  readonly request: LoggedRequest;
  readonly order: number;
}

/**
 * Puts requests into the order of their times. Each is held back until one comes that is later by the window, so those that came
 * up to a window late find their place. Those that come in order are only queued.
 */
export class ReorderBuffer {
  /** In order, from `head` on. */
  private queue: LoggedRequest[] = [];
  private head = 0;
  /** A heap. */
  private readonly late: Late[] = [];
  private latest = -Infinity;
  /** How many came late. */
  lateCount = 0;

  constructor(
    /** In microseconds. */
    private readonly window: number,
    private readonly onRequest: (request: LoggedRequest) => void,
  ) {}

  push(request: LoggedRequest): void {
    if (request.time >= this.latest) {
      this.latest = request.time;
      this.queue.push(request);
    } else this.addLate({ request, order: this.lateCount++ });
    while (this.held > MOST_HELD) this.handOn();
    while (this.held > 0 && this.earliest <= this.latest - this.window) this.handOn();
  }

  /** There are no more: hands on all that are held. */
  end(): void {
    while (this.held > 0) this.handOn();
  }

  private get held(): number {
    return this.queue.length - this.head + this.late.length;
  }

  private get earliest(): number {
    return Math.min(this.queue[this.head]?.time ?? Infinity, this.late[0]?.request.time ?? Infinity);
  }

  private handOn(): void {
    const queued = this.queue[this.head];
    const late = this.late[0]?.request;
    if (late !== undefined && (queued === undefined || late.time < queued.time)) {
      this.removeFirstLate();
      this.onRequest(late);
      return;
    }
    if (++this.head >= 1000 && this.head * 2 >= this.queue.length) {
      this.queue = this.queue.slice(this.head);
      this.head = 0;
    }
    this.onRequest(queued!);
  }

  private addLate(added: Late): void {
    const { late } = this;
    let at = late.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!precedes(added, late[parent]!)) break;
      late[at] = late[parent]!;
      at = parent;
    }
    late[at] = added;
  }

  private removeFirstLate(): void {
    const { late } = this;
    const last = late.pop()!;
    if (late.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= late.length) break;
      if (child + 1 < late.length && precedes(late[child + 1]!, late[child]!)) child++;
      if (!precedes(late[child]!, last)) break;
      late[at] = late[child]!;
      at = child;
    }
    late[at] = last;
  }
}

function precedes(one: Late, other: Late): boolean {
  const earlier = one.request.time - other.request.time;
  return earlier < 0 || (earlier === 0 && one.order < other.order);
}
