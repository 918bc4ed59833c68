import { reasonOf } from '../../engine/errors/reasons.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import type { RecordedChange } from '../../app/overrides/override.js';
import type { ChangeInfo, Changes, Difference } from '../api.js';
import type { ShownNames } from '../shown-names.js';
import type { ConsoleRedis } from '../telemetry/console-redis.js';

/** The same number as in the history of rates. */
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

/** Reads an entry; `undefined` if it isn't one, for example if another release wrote it. */
function readEntry(text: string, names: ShownNames): LoggedChange | undefined {
  try {
    const entry = JSON.parse(text) as Record<keyof LoggedChange | 'plain', unknown>;
    const { at, action, limit, key, by, reason, after, plain } = entry;
    if (!Number.isFinite(at) || !ACTIONS.includes(action as never) || typeof key !== 'string') return undefined;
    return {
      at: at as number,
      action: action as LoggedChange['action'],
      limit: typeof limit === 'string' ? limit : null,
      // The instance that wrote it may show identities while this one doesn't.
      key: plain === true ? names.key(key) : key,
      by: asText(by),
      reason: asText(reason),
      after: asText(after),
    };
  } catch {
    return undefined;
  }
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

const MOST_READ = 1000;
const MOST_SHOWN = 500;

/** All changes: those of rates, modes and lists by code or the console, and those of keys by the console. */
export class ChangeLog {
  constructor(
    private readonly service: LimiterService,
    private readonly log: ConsoleLog,
    private readonly names: ShownNames,
  ) {}

  /** The changes of one limit or of all, the newest first. If some can't be read, they are left out and the problem is reported. */
  async read(limit: string | undefined): Promise<Changes> {
    const [recorded, logged] = await Promise.allSettled([this.service.changes({ last: MOST_READ }), this.log.read()]);
    const changes: ChangeInfo[] = [];
    if (recorded.status === 'fulfilled') changes.push(...recorded.value.flatMap((change) => this.shown(change)));
    if (logged.status === 'fulfilled') changes.push(...logged.value.map((change) => ({ ...change, version: null })));
    const failed = [recorded, logged].find((each) => each.status === 'rejected');
    return {
      changes: changes
        .filter((change) => limit === undefined || change.limit === limit)
        .toSorted((one, other) => other.at - one.at || (other.version ?? 0) - (one.version ?? 0))
        .slice(0, MOST_SHOWN),
      problem: failed && reasonOf(failed.reason),
    };
  }

  /** One entry for each setting that a change has changed. */
  private shown({ version, at, by, reason, rollbackTo, overrides }: RecordedChange): ChangeInfo[] {
    return overrides.map((changed) => {
      const difference = this.difference(changed);
      const action = rollbackTo === undefined ? difference.action : 'rollback';
      return { ...difference, at, action, by, reason, version, rollbackTo };
    });
  }

  /** The changed setting, its key, and the values before and after. A value is absent if it is the configured one. */
  difference(changed: RecordedChange['overrides'][number]): Difference {
    const { kind, limit = null, before, after } = changed;
    const key = kind === 'list' ? this.names.entry(changed.entry) : changed.key && this.names.key(changed.key);
    return {
      action: kind,
      limit,
      key: key ?? null,
      before: before && textOf(before),
      after: after && textOf(after),
    };
  }
}

interface Changed {
  readonly patch?: object;
  readonly mode?: string;
  readonly list?: string;
  readonly expiresAt: number | undefined;
}

/** The new value as text: `rate: 50, burst: 100`, `shadow`, `deny`; without when it ends. */
export function valuesText(changed: object): string {
  const { patch, mode, list } = changed as Changed;
  const options = Object.entries(patch ?? {}).map(([option, value]) => `${option}: ${valueText(value)}`);
  return [mode, list, options.join(', ')].filter((text) => text !== undefined && text !== '').join(' ');
}

function textOf(changed: object): string {
  const { expiresAt } = changed as Changed;
  const what = valuesText(changed);
  return expiresAt === undefined ? what : `${what} until ${new Date(expiresAt).toISOString()}`;
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
