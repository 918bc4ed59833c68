import { pairsOf } from '../../storage/redis/errors.js';
import type { Command, ConsoleRedis } from './console-redis.js';

/** The reason why a key is recorded: its limit or a call has blocked it, or it holds units. */
export type NoteKind = 'limit' | 'call' | 'hold';

/** A key of a limit that deviates from the configuration until some time, as seen by an instance. */
export interface Note {
  readonly kind: NoteKind;
  readonly label: string;
  readonly identity: string;
  /** In milliseconds since the epoch. */
  readonly until: number;
}

export interface Noted {
  /** The longest lasting first. */
  readonly notes: readonly Note[];
  /** Since when keys are recorded, in milliseconds since the epoch; `null` if unknown. */
  readonly since: number | null;
  /** True if there were more keys than are kept. */
  readonly isCut: boolean;
}

/** Maximum number of keys per list, in an instance and on Redis. */
export const MOST_NOTED = 1000;
/** Maximum number of keys to store per call. */
const MOST_SENT = 200;
/** Longer identities are not recorded. */
const LONGEST_NOTED = 256;
/** A block is not recorded again if its end differs by less than this, in milliseconds. */
const SAME_MS = 2000;
/** Longer than any block. */
const KEPT_SECONDS = 400 * 86_400;

/** Records keys that are blocked or hold units, since no store can list them. */
export class NotedKeys {
  private readonly blocks = new Map<string, Note>();
  private readonly holds = new Map<string, Note>();
  private unsent = new Map<string, Note>();
  private missed = 0;
  private readonly since: number;

  constructor(private readonly now: () => number) {
    this.since = Math.round(now());
  }

  /** Records that a key is blocked for `forMs`; 0 if it is no longer blocked. */
  blocked(kind: 'limit' | 'call', label: string, identity: string, forMs: number): void {
    const now = this.now();
    const until = Math.round(now + forMs);
    const known = this.blocks.get(nameOf(kind, label, identity));
    if (forMs === 0 && kind === 'call') this.note({ kind: 'limit', label, identity, until: 0 }, this.blocks);
    if (known !== undefined && Math.abs(known.until - until) < SAME_MS) return;
    this.note({ kind, label, identity, until: forMs > 0 ? until : 0 }, this.blocks);
  }

  /** Records that a key holds units. They lapse after `forMs` unless they are renewed. */
  held(label: string, identity: string, forMs: number): void {
    const now = this.now();
    const known = this.holds.get(nameOf('hold', label, identity));
    // A record covers twice the time, so that not every request creates one.
    if (known !== undefined && known.until - now >= forMs) return;
    this.note({ kind: 'hold', label, identity, until: Math.round(now + 2 * forMs) }, this.holds);
  }

  own(list: 'blocks' | 'holds'): Noted {
    const now = this.now();
    const notes = [...this[list].values()].filter(({ until }) => until > now);
    return {
      notes: notes.toSorted((one, other) => other.until - one.until),
      since: this.since,
      isCut: this.missed > 0,
    };
  }

  /** Deletes records of keys that no longer deviate. */
  forget(list: 'blocks' | 'holds', notes: readonly Note[]): void {
    for (const { kind, label, identity } of notes) this[list].delete(nameOf(kind, label, identity));
  }

  /** Removes and returns the records to store next. */
  take(): Note[] {
    const taken = [...this.unsent].slice(0, MOST_SENT);
    for (const [name] of taken) this.unsent.delete(name);
    return taken.map(([, note]) => note);
  }

  /** Returns records that could not be stored. Records made since then are newer. */
  putBack(notes: readonly Note[]): void {
    const before = notes.map((note) => [nameOf(note.kind, note.label, note.identity), note] as const);
    this.unsent = new Map([...before, ...this.unsent].slice(0, 2 * MOST_NOTED));
  }

  storing({ keys }: ConsoleRedis, notes: readonly Note[], isFirst: boolean): Command[] {
    const now = Math.round(this.now());
    const commands: Command[] = [];
    if (isFirst)
      commands.push(['set', keys.noted, this.since, 'EX', KEPT_SECONDS, 'NX'], ['expire', keys.noted, KEPT_SECONDS]);
    for (const [key, kinds] of [
      [keys.blocks, ['limit', 'call']],
      [keys.holds, ['hold']],
    ] as const) {
      const ours = notes.filter(({ kind }) => (kinds as readonly string[]).includes(kind));
      if (ours.length === 0) continue;
      // An end in the past removes the key.
      commands.push(
        ['zadd', key, ...ours.flatMap((note) => [note.until, memberOf(note)])],
        ['zremrangebyscore', key, '-inf', now],
        ['zremrangebyrank', key, 0, -(MOST_NOTED + 1)],
        ['expire', key, KEPT_SECONDS],
      );
    }
    if (this.missed > 0) {
      commands.push(['set', keys.unnoted, 1, 'EX', KEPT_SECONDS]);
      this.missed = 0;
    }
    return commands;
  }

  private note(note: Note, list: Map<string, Note>): void {
    const { kind, label, identity, until } = note;
    if (identity.length > LONGEST_NOTED) {
      this.missed++;
      return;
    }
    const name = nameOf(kind, label, identity);
    if (until === 0) list.delete(name);
    else if (list.has(name) || this.makeRoom(list)) list.set(name, note);
    else {
      this.missed++;
      return;
    }
    if (this.unsent.size < 2 * MOST_NOTED || this.unsent.has(name)) this.unsent.set(name, note);
  }

  /** Deletes records that are over if the list is full. Returns true if there is room. */
  private makeRoom(list: Map<string, Note>): boolean {
    if (list.size < MOST_NOTED) return true;
    const now = this.now();
    for (const [name, { until }] of list) if (until <= now) list.delete(name);
    return list.size < MOST_NOTED;
  }
}

/** Reads the records of all instances. Rejects with `RateLimitStoreError`. */
export async function readNoted(redis: ConsoleRedis, list: 'blocks' | 'holds', now: number): Promise<Noted> {
  const { keys } = redis;
  const [members, since, unnoted] = await redis.read([
    ['zrevrangebyscore', keys[list], '+inf', Math.round(now), 'WITHSCORES', 'LIMIT', 0, MOST_NOTED],
    ['get', keys.noted],
    ['get', keys.unnoted],
  ]);
  const read = pairsOf(members ?? []);
  const notes = read.flatMap(([member, until]) => readMember(member, Number(until)) ?? []);
  return {
    notes,
    since: typeof since === 'string' ? Number(since) : null,
    isCut: unnoted !== null || read.length >= MOST_NOTED,
  };
}

export function forgetting({ keys }: ConsoleRedis, list: 'blocks' | 'holds', notes: readonly Note[]): Command[] {
  return notes.length === 0 ? [] : [['zrem', keys[list], ...notes.map(memberOf)]];
}

function nameOf(kind: NoteKind, label: string, identity: string): string {
  return `${kind}\n${label}\n${identity}`;
}

function memberOf({ kind, label, identity }: Note): string {
  return JSON.stringify([kind, label, identity]);
}

/** Reads a member; `undefined` if it isn't a record, for example if another release wrote it. */
function readMember(member: string, until: number): Note | undefined {
  try {
    const [kind, label, identity] = JSON.parse(member) as unknown[];
    if (kind !== 'limit' && kind !== 'call' && kind !== 'hold') return undefined;
    return typeof label === 'string' && typeof identity === 'string' ? { kind, label, identity, until } : undefined;
  } catch {
    return undefined;
  }
}
