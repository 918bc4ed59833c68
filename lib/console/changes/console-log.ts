import type { ChangeInfo } from '../api.js';
import type { ShownNames } from '../shown-names.js';
import type { ConsoleRedis } from '../telemetry/console-redis.js';

/** The same number as the history of rates keeps. */
const MOST_ENTRIES = 1000;

/** A change to the counter of a key. */
export type LoggedChange = Omit<ChangeInfo, 'version' | 'rollbackTo' | 'before'> & { readonly key: string };

/** The log of changes to keys: on Redis, or in process without it. It keeps the last thousand. */
export class ConsoleLog {
  private readonly own: LoggedChange[] = [];

  constructor(
    private readonly redis: ConsoleRedis | undefined,
    private readonly names: ShownNames,
  ) {}

  /** Logs a change to a key, which is passed unhashed. Rejects with `RateLimitStoreError`. */
  async write(change: LoggedChange): Promise<void> {
    const { redis, names } = this;
    const named = { ...change, key: names.key(change.key) };
    if (redis === undefined) {
      this.own.unshift(named);
      this.own.length = Math.min(this.own.length, MOST_ENTRIES);
      return;
    }
    const { log } = redis.keys;
    await redis.run([
      ['lpush', log, JSON.stringify({ ...named, plain: names.isPlain })],
      ['ltrim', log, 0, MOST_ENTRIES - 1],
    ]);
  }

  /** All entries, the newest first. Rejects with `RateLimitStoreError`. */
  async read(): Promise<LoggedChange[]> {
    const { redis, names } = this;
    if (redis === undefined) return [...this.own];
    const [entries] = await redis.run([['lrange', redis.keys.log, 0, MOST_ENTRIES - 1]]);
    return (entries as string[]).flatMap((text) => readEntry(text, names) ?? []);
  }
}

const ACTIONS: readonly ChangeInfo['action'][] = ['block', 'unblock', 'reset', 'refund', 'penalize'];

/** Reads an entry; `undefined` if it is not one, such as one of another release. */
function readEntry(text: string, names: ShownNames): LoggedChange | undefined {
  try {
    const entry = JSON.parse(text) as Record<keyof LoggedChange | 'plain', unknown>;
    const { at, action, limit, key, by, reason, after, plain } = entry;
    if (!Number.isFinite(at) || !ACTIONS.includes(action as never) || typeof key !== 'string') return undefined;
    return {
      at: at as number,
      action: action as LoggedChange['action'],
      limit: typeof limit === 'string' ? limit : null,
      // The instance that wrote it may show identities, while this one does not.
      key: plain === true ? names.key(key) : key,
      ...(typeof by === 'string' && { by }),
      ...(typeof reason === 'string' && { reason }),
      ...(typeof after === 'string' && { after }),
    };
  } catch {
    return undefined;
  }
}
