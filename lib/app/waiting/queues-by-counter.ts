import { getOrMake } from '../../engine/util/objects.js';
import type { TurnQueue } from './turn-queue.js';

const NONE: readonly never[] = [];

/** Queues of waiting calls, by key and by the counters whose units they wait for. */
export class QueuesByCounter {
  private readonly byKey = new Map<string, TurnQueue>();
  private readonly byCounter = new Map<string, Set<TurnQueue>>();

  get size(): number {
    return this.byKey.size;
  }

  get all(): Iterable<TurnQueue> {
    return this.byKey.values();
  }

  find(key: string): TurnQueue | undefined {
    return this.byKey.get(key);
  }

  /** The queues that wait for units of a counter, and possibly of others. */
  of(counter: string): Iterable<TurnQueue> {
    return this.byCounter.get(counter) ?? NONE;
  }

  /** The same for all counters whose ids have this prefix. */
  *ofAll(beginning: string): Generator<TurnQueue> {
    for (const counter of this.byCounter.keys()) if (counter.startsWith(beginning)) yield* this.of(counter);
  }

  add(queue: TurnQueue): void {
    this.byKey.set(queue.key, queue);
    for (const counter of queue.counters) {
      getOrMake(this.byCounter, counter, () => new Set<TurnQueue>()).add(queue);
    }
  }

  /** Removes a queue if it is still there. */
  delete(queue: TurnQueue): void {
    if (this.byKey.get(queue.key) === queue) this.byKey.delete(queue.key);
    for (const counter of queue.counters) {
      const found = this.byCounter.get(counter);
      if (found?.delete(queue) === true && found.size === 0) this.byCounter.delete(counter);
    }
  }
}
