const NONE: ReadonlySet<never> = new Set();

/** Queues of waiting calls, by key and by the counters whose units they wait for. */
export class QueuesByCounter<Q> {
  private readonly byKey = new Map<string, Q>();
  private readonly byCounter = new Map<string, Set<Q>>();

  get size(): number {
    return this.byKey.size;
  }

  get all(): Iterable<Q> {
    return this.byKey.values();
  }

  find(key: string): Q | undefined {
    return this.byKey.get(key);
  }

  /** The queues that wait for units of a counter, and possibly of others. */
  of(counter: string): ReadonlySet<Q> {
    return this.byCounter.get(counter) ?? NONE;
  }

  /** The same for all counters whose ids begin like this. */
  *ofAll(beginning: string): Generator<Q> {
    for (const [counter, queues] of this.byCounter) if (counter.startsWith(beginning)) yield* queues;
  }

  /** Adds a queue, which calls back when it has ended. */
  add(key: string, counters: readonly string[], make: (ended: () => void) => Q): Q {
    const queue = make(() => {
      // An old queue may report its end again after the next one has started.
      if (this.byKey.get(key) === queue) this.byKey.delete(key);
      for (const counter of counters) this.forget(counter, queue);
    });
    this.byKey.set(key, queue);
    for (const counter of counters) {
      const queues = this.byCounter.get(counter) ?? new Set();
      this.byCounter.set(counter, queues.add(queue));
    }
    return queue;
  }

  private forget(counter: string, queue: Q): void {
    const queues = this.byCounter.get(counter);
    queues?.delete(queue);
    if (queues?.size === 0) this.byCounter.delete(counter);
  }
}
