import { Heap } from '../../engine/util/heap.js';
import type { LoggedRequest } from './logged-request.js';

/** The most requests to hold back. */
const MOST_HELD = 100_000;

/** A request that came late, and its rank among requests of the same time: behind those that came in order. */
interface Late {
  readonly request: LoggedRequest;
  readonly order: number;
}

/**
 * Puts requests in the order of their times. Each is held back until one comes that is later by the window, so requests that are
 * up to a window late find their place. Requests in order are simply queued.
 */
export class ReorderBuffer {
  /** In order, from `head` on. */
  private queue: LoggedRequest[] = [];
  private head = 0;
  private readonly late = new Heap(precedes);
  private latest = -Infinity;
  /** The number of requests that came late. */
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
    } else this.late.add({ request, order: this.lateCount++ });
    while (this.held > MOST_HELD) this.handOn();
    while (this.held > 0 && this.earliest <= this.latest - this.window) this.handOn();
  }

  /** Passes on all remaining requests. */
  end(): void {
    while (this.held > 0) this.handOn();
  }

  private get held(): number {
    return this.queue.length - this.head + this.late.size;
  }

  private get earliest(): number {
    return Math.min(this.queue[this.head]?.time ?? Infinity, this.late.first?.request.time ?? Infinity);
  }

  private handOn(): void {
    const queued = this.queue[this.head];
    const late = this.late.first?.request;
    if (late !== undefined && (queued === undefined || late.time < queued.time)) {
      this.late.take();
      this.onRequest(late);
      return;
    }
    if (++this.head >= 1000 && this.head * 2 >= this.queue.length) {
      this.queue = this.queue.slice(this.head);
      this.head = 0;
    }
    this.onRequest(queued!);
  }
}

function precedes(one: Late, other: Late): boolean {
  const earlier = one.request.time - other.request.time;
  return earlier < 0 || (earlier === 0 && one.order < other.order);
}
