import type { Counter } from '../../engine/limits/counter.js';
import { type Entry, keyOf } from '../../storage/stores/memory/limit-counters.js';
import { MemoryStore } from '../../storage/stores/memory/memory.store.js';
import type { CounterParts } from './stored-counter.js';

/** Decides about counters that are stored elsewhere: they are loaded, changed, and read again, all in one turn. */
export class ScratchStore extends MemoryStore {
  /** Microseconds since the epoch. */
  private now = 0;

  constructor() {
    super({ clock: () => this.now, maxKeys: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER });
  }

  begin(now: number): void {
    this.now = now;
  }

  put({ limit, identity }: Counter, parts: CounterParts): void {
    const entry = this.table.of(limit).make(keyOf(identity));
    this.table.keep(limit, Object.assign(entry, parts));
  }

  /** The counter to store; `undefined` if it is empty. */
  get({ limit, identity }: Counter): Entry | undefined {
    return this.table.of(limit).get(keyOf(identity));
  }

  end(): void {
    this.table.clear();
  }
}
