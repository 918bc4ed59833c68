import type { Counter } from '../../engine/limits/counter.js';
import type { HeldNow, OpenCounter } from '../../engine/limits/estimates.js';
import { type FeatureReading, read, type ReadableStore, type RedisParts } from '../stores/feature-reading.js';
import { keyOf } from '../stores/redis/keys.js';

/** Maximum number of holders whose units are added up. */
const MOST = 256;
/** The identifier and the units of a holder. */
const MEMBER = /^\d+:(\d+)/;

/** A holder of units of a counter, and when its units lapse. */
export interface Holder {
  readonly units: number;
  /** In microseconds. */
  readonly end: number;
}

/** The places where the holders of a counter are kept. */
export interface HoldersKept {
  /** The name of the reading. */
  readonly name: string;
  /** In process: the holders that have not lapsed by `now`, the first to lapse first. */
  readonly inMemory: (counter: OpenCounter, now: number) => readonly Holder[];
  /** On Redis: the key of their sorted set, for the key of the counter. */
  readonly key: (counterKey: string) => string;
}

/** The current holders of a counter; `undefined` if the store can't list them. */
export function heldNow(store: ReadableStore, counter: Counter, kept: HoldersKept): Promise<HeldNow | undefined> {
  const reading: FeatureReading<Promise<HeldNow | undefined>> = {
    name: kept.name,
    counter,
    inMemory: async (parts) => inMemory(kept.inMemory(parts.open(counter), parts.now()), parts.now()),
    onRedis: (parts) => onRedis(parts, kept.key(keyOf(parts.prefix, counter))),
    elsewhere: async () => undefined,
  };
  return read(store, counter.limit, reading);
}

function inMemory(holders: readonly Holder[], now: number): HeldNow {
  return summed(holders.length, holders.slice(0, MOST), now);
}

function onRedis(parts: RedisParts, key: string): Promise<HeldNow> {
  return parts.guarded(async () => {
    const now = await parts.time();
    const after = `(${now}`;
    const commands = [
      ['zcount', key, after, '+inf'],
      ['zrangebyscore', key, after, '+inf', 'LIMIT', 0, MOST, 'WITHSCORES'],
    ];
    const replies = (await parts.client.pipeline(commands).exec())!;
    for (const [error] of replies) if (error !== null) throw error;
    const [count, first] = replies.map(([, reply]) => reply);
    return summed(Number(count), holdersIn(first), now);
  });
}

/** @param first the holders out of `count` that lapse first */
function summed(count: number, first: readonly Holder[], now: number): HeldNow {
  const untilMs = (holder: Holder | undefined) => Math.ceil((holder!.end - now) / 1000);
  return {
    count,
    ...(count <= first.length && { units: first.reduce((sum, { units }) => sum + units, 0) }),
    ...(first.length > 0 && { firstLapseMs: untilMs(first[0]) }),
    ...(first.length > 0 && count <= first.length && { lastLapseMs: untilMs(first.at(-1)) }),
  };
}

/** The members of a sorted set with their scores, for both versions of the protocol. */
function holdersIn(reply: unknown): Holder[] {
  const values = (reply as unknown[]).flat();
  const holders: Holder[] = [];
  for (let at = 0; at + 1 < values.length; at += 2) {
    const [, units = '0'] = MEMBER.exec(String(values[at])) ?? [];
    holders.push({ units: Number(units), end: Number(values[at + 1]) });
  }
  return holders;
}
