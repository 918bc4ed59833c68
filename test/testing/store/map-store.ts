import { type CounterChanges, TransactionalStore } from '../../../lib/testing/store/index.js';

/** A database in miniature: one transaction after another, each of which waits for a turn as one over a network does. */
export class MapStore extends TransactionalStore {
  readonly values = new Map<string, string>();
  protected last: Promise<unknown> = Promise.resolve();

  protected override transact<T>(
    keys: readonly string[],
    change: (values: readonly (string | undefined)[]) => CounterChanges<T>,
  ): Promise<T> {
    const done = this.last.then(async () => {
      await new Promise(setImmediate);
      const { writes, result } = change(keys.map((key) => this.values.get(key)));
      for (const { key, value } of writes) {
        if (value === undefined) this.values.delete(key);
        else this.values.set(key, value);
      }
      return result;
    });
    this.last = done.catch(() => undefined);
    return done;
  }
}
