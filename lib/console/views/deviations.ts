import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { Overrides } from '../../app/overrides/overrides.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import { hashOf } from '../../storage/telemetry/decision-event.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import type { BlockDeviation, Deviation, DeviationKind, Deviations, LimitState } from '../api.js';
import { unreadProblem } from '../problem.js';
import { type ConsoleLog, type LoggedChange, valuesText } from '../changes/change-log.js';
import { allEntries } from '../changes/list-changes.js';
import type { LimitCatalog } from '../limit-catalog.js';
import { hasPart, type ShownNames } from '../shown-names.js';
import type { ConsoleRedis } from '../telemetry/console-redis.js';
import { forgetting, type Note, type Noted, type NotedKeys, readNoted } from '../telemetry/noted-keys.js';
import type { Lookups } from './lookups.js';

export const DEVIATIONS_PAGE = 50;
/** Maximum number of recorded keys to read for one page, and at the same time. */
const MOST_LOOKED_AT = 200;
const AT_ONCE = 16;

export interface DeviationQuery {
  readonly kind: DeviationKind;
  /** A part of a displayed text, or an identity. */
  readonly find: string;
  readonly limit: string | undefined;
  /** The number of entries before the page, displayed or not. */
  readonly cursor: number;
}

/** A deviation and its unhashed key. */
interface Found {
  readonly deviation: Deviation;
  readonly identity: string;
}

type Page = Pick<Deviations, 'entries' | 'next'>;

/** Lists deviations from the configuration: overrides, blocks, list entries, and held units. */
export class DeviationLists {
  constructor(
    private readonly catalog: LimitCatalog,
    private readonly overrides: Overrides,
    private readonly service: LimiterService,
    private readonly lookups: Lookups,
    private readonly names: ShownNames,
    private readonly noted: NotedKeys,
    private readonly log: ConsoleLog,
    private readonly redis: ConsoleRedis | undefined,
    private readonly now: () => number,
  ) {}

  async page(query: DeviationQuery): Promise<Deviations> {
    if (query.kind === 'blocks') return this.notedPage(query, 'blocks');
    if (query.kind === 'leases') return this.notedPage(query, 'holds');
    const failure = await this.overrides.readIfPossible();
    const found = query.kind === 'overrides' ? this.overridden() : this.listed();
    const problem = failure && unreadProblem(failure);
    return { ...(await this.matching(found, query)), problem };
  }

  /** The key of an override by its id on a page; empty for all identities. */
  async keyOf(limit: string, id: string): Promise<string | undefined> {
    await this.overrides.readIfPossible();
    for (const { deviation, identity } of this.overridden()) {
      if (deviation.limit === limit && deviation.id === id) return identity;
    }
    return undefined;
  }

  /** The identity of a recorded key by its hash. Rejects with `RateLimitStoreError`. */
  async identityOf(label: string, id: string): Promise<string | undefined> {
    for (const list of ['blocks', 'holds'] as const) {
      const { notes } = await this.read(list);
      const note = notes.find((each) => each.label === label && hashOf(each.identity) === id);
      if (note !== undefined) return note.identity;
    }
    return undefined;
  }

  private *overridden(): Iterable<Found> {
    const labels = new Map(this.catalog.entries().map(({ label, rule }) => [rule, label]));
    for (const { limit, key, rate, mode } of this.overrides.inForce()) {
      for (const [of, override] of [
        ['rate', rate],
        ['mode', mode],
      ] as const) {
        if (override === undefined) continue;
        const { expiresAt, by, reason } = override;
        yield {
          identity: key,
          deviation: {
            kind: 'overrides',
            of,
            id: hashOf(key),
            key: key === '' ? null : this.names.key(key),
            limit: labels.get(limit) ?? limit.name,
            value: valuesText(override),
            expiresAt: expiresAt ?? null,
            by,
            reason,
          },
        };
      }
    }
  }

  private async *listed(): AsyncIterable<Found> {
    for await (const listed of allEntries(this.service)) {
      const { identity, pattern, ip } = listed.entry;
      const item = this.names.item(listed);
      const { id, entry: key, limit, expiresAt, by, reason } = item;
      const deviation = { kind: 'lists', id, key, limit, expiresAt, by, reason, item } as const;
      yield { identity: identity ?? pattern ?? ip ?? '', deviation };
    }
  }

  private async matching(all: Iterable<Found> | AsyncIterable<Found>, query: DeviationQuery): Promise<Page> {
    const entries: Deviation[] = [];
    let at = 0;
    for await (const found of all) {
      if (at++ < query.cursor || !isMeant(found, query)) continue;
      if (entries.length === DEVIATIONS_PAGE) return { entries, next: String(at - 1) };
      entries.push(found.deviation);
    }
    return { entries };
  }

  private async notedPage(query: DeviationQuery, list: 'blocks' | 'holds'): Promise<Deviations> {
    let noted: Noted;
    let problem: string | undefined;
    try {
      noted = await this.read(list);
    } catch (error) {
      noted = this.noted.own(list);
      problem = consoleMessages.unreachable(reasonOf(error));
    }
    const logged = list === 'blocks' ? await this.log.read().catch(() => []) : [];
    const keys = [...byKey(noted.notes)];
    const entries: Deviation[] = [];
    const over: Note[] = [];
    let gone = 0;
    let unread = 0;
    let at = query.cursor;
    const end = Math.min(keys.length, query.cursor + MOST_LOOKED_AT);
    while (at < end && entries.length < DEVIATIONS_PAGE) {
      const some = keys.slice(at, Math.min(end, at + Math.min(AT_ONCE, DEVIATIONS_PAGE - entries.length)));
      at += some.length;
      const seen = await Promise.all(some.map((notes) => this.look(notes, logged)));
      for (const [index, each] of seen.entries()) {
        if (each === 'unread') unread++;
        else if (each === undefined) {
          over.push(...some[index]!);
          gone++;
        } else if (isMeant(each, query)) entries.push(each.deviation);
      }
    }
    if (problem !== undefined || !(await this.forget(list, over))) gone = 0;
    return {
      entries,
      ...(at < keys.length && { next: String(at - gone) }),
      since: noted.since,
      isCut: noted.isCut,
      unread,
      problem,
    };
  }

  /** Reads a counter. Returns nothing if it no longer deviates. */
  private async look(notes: readonly Note[], logged: readonly LoggedChange[]): Promise<Found | 'unread' | undefined> {
    const { label, identity } = notes[0]!;
    const entry = this.catalog.find(label);
    if (entry === undefined || entry.rule.perRoute) return 'unread';
    const state = await this.lookups.one(entry, identity).catch(() => undefined);
    // A list that decides instead of the limit hides the state of the counter.
    const isHidden = state?.listed !== undefined || state?.unread !== undefined || state?.source === 'fallback';
    if (state === undefined || isHidden) return 'unread';
    const common = { id: hashOf(identity), key: this.names.key(identity), limit: label };
    if (notes[0]!.kind !== 'hold') {
      const block = this.block(notes, state, logged);
      return block && { identity, deviation: { ...common, ...block } };
    }
    const { used, quota, resetAfterMs } = state;
    if (used === null) return 'unread';
    if (used === 0) return undefined;
    const expiresAt = resetAfterMs === null ? null : Math.round(this.now() + resetAfterMs);
    return { identity, deviation: { ...common, kind: 'leases', held: used, quota, expiresAt } };
  }

  private block(
    notes: readonly Note[],
    { blockedUntil, limit }: LimitState,
    logged: readonly LoggedChange[],
  ): Omit<BlockDeviation, 'id' | 'key' | 'limit'> | undefined {
    if (blockedUntil === null) return undefined;
    const expiresAt = blockedUntil;
    // A later block may have replaced an earlier one with another origin.
    const { kind, identity } = notes.toSorted(
      (one, other) => Math.abs(one.until - expiresAt) - Math.abs(other.until - expiresAt),
    )[0]!;
    if (kind === 'limit') return { kind: 'blocks', origin: 'limit', expiresAt };
    const key = this.names.key(identity);
    const change = logged.find((each) => each.limit === limit && each.key === key);
    if (change?.action !== 'block') return { kind: 'blocks', origin: 'code', expiresAt };
    return { kind: 'blocks', origin: 'console', expiresAt, by: change.by, reason: change.reason };
  }

  /** Deletes records of keys that no longer deviate. Returns true if it did. */
  private async forget(list: 'blocks' | 'holds', notes: readonly Note[]): Promise<boolean> {
    this.noted.forget(list, notes);
    if (this.redis === undefined) return true;
    const replies = await this.redis.run(forgetting(this.redis, list, notes)).catch(() => undefined);
    return replies !== undefined;
  }

  private read(list: 'blocks' | 'holds'): Promise<Noted> {
    return this.redis === undefined ? Promise.resolve(this.noted.own(list)) : readNoted(this.redis, list, this.now());
  }
}

/** The records of each key of a limit, in their order. */
function byKey(notes: readonly Note[]): Iterable<Note[]> {
  const keys = new Map<string, Note[]>();
  for (const note of notes) {
    const name = `${note.label}\n${note.identity}`;
    keys.set(name, [...(keys.get(name) ?? []), note]);
  }
  return keys.values();
}

function isMeant({ deviation, identity }: Found, { find, limit }: DeviationQuery): boolean {
  // An entry for all limits also applies to this one.
  if (limit !== undefined && deviation.limit !== null && deviation.limit !== limit) return false;
  const { key, by, reason } = deviation;
  if (find === '' || hasPart(identity, find)) return true;
  const text = [key, deviation.limit, by, reason, deviation.kind === 'overrides' ? deviation.value : ''].join(' ');
  return text.toLowerCase().includes(find.toLowerCase());
}
