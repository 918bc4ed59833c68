import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { withDeadline } from '../../redis/deadline.js';
import type { Connection } from '../../redis/connection.js';
import { pairsOf } from '../../redis/pairs-of.js';
import { asStoreError, serverOf } from '../../redis/store-error.js';
import { regionsIn } from '../../stores/redis/keys.js';
import { horizonOf } from './terms.js';

/** What a home knows of its own charges, in microseconds of its clock. `lua/features/regions.lua` keeps it. */
export interface HomeDoubt {
  readonly now: number;
  /** When it lost some last; 0 if never. */
  readonly lost: number;
  /** Since when it is the home, after a restart or failover. */
  readonly since: number;
  /** Whether all regions have called since. */
  readonly isHeard: boolean;
}

/** A region that was silent for this long before the home was replaced is not waited for. */
const SILENT = 600_000_000;
/** How soon a home that has not heard of all regions may have, in milliseconds. */
const ASK_AGAIN_MS = 250;

/** Reads it without a call of a region, which would count. Rejects with `RateLimitStoreError`. */
export async function readDoubt(client: Connection, hash: string, timeoutMs: number): Promise<HomeDoubt> {
  const commands = [['time'], ['info', 'replication'], ['hgetall', hash]];
  let replies: unknown[];
  try {
    const answers = (await withDeadline(client.pipeline(commands).exec(), timeoutMs)) ?? [];
    const failure = answers.find(([error]) => error !== null);
    if (failure !== undefined) throw failure[0]!;
    replies = answers.map(([, reply]) => reply);
  } catch (error) {
    throw asStoreError(error, serverOf(client));
  }
  const [time, info, stored] = replies as [[string, string], string, unknown];
  const now = Number(time[0]) * 1e6 + Number(time[1]);
  const fields = new Map(pairsOf(stored));
  const of = (name: string) => Number(fields.get(name) ?? 0);
  const lost = Math.min(of('lost'), now);
  if (fields.size === 0) return { now, lost, since: now, isHeard: true };
  const [, id = ''] = /master_replid:([\da-f]{12})/.exec(info) ?? [];
  // The next call finds that the server is another one.
  if (of('history') !== Number.parseInt(id, 16)) return { now, lost, since: now, isHeard: false };
  const isHeard = regionsIn([...fields.keys()]).every(
    (region) => of(`heard:${region}`) === of('epoch') || of(`seen:${region}`) <= of('survived') - SILENT,
  );
  return { now, lost, since: of('since'), isHeard };
}

/** For how long, in milliseconds, the home grants nothing of a limit, since it may not know what it granted; 0 if it does. */
export function doubtMs({ algorithm, parameters }: CompiledLimit, { now, lost, since, isHeard }: HomeDoubt): number {
  const isOpen = (from: number) => from + horizonOf(algorithm, parameters, from) > now;
  if (!isHeard && isOpen(since)) return ASK_AGAIN_MS;
  return lost > 0 && isOpen(lost) ? Math.ceil((lost + horizonOf(algorithm, parameters, lost) - now) / 1000) : 0;
}
