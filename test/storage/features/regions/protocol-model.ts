/**
 * The protocol of limits over several regions (docs/internals/regions-protocol.md) as pure functions of plain values: what the servers of the regions
 * and of the home keep, and what each step makes of it. Times are those of an argument, in any unit.
 */

/** What keeps the promise. The model can leave each out, to show what happens then. */
export const GUARDS = [
  /** The home makes an exchange once, known by its number. */
  'the number of an exchange',
  /** … and by the history in which it began: a server that lost the last exchanges numbers others like them. */
  'the history of an exchange',
  /** A region takes the reply to its open exchange only. */
  'the open exchange',
  /** A region whose server has another history drops what it held. */
  'the history of a region',
  /** A home with another history grants nothing until all regions have called. */
  'the regions to be heard',
  /** A region that got more answers than the home knows proves a loss. */
  'the number of calls',
  /** Calls before a region knows the new home are not counted. */
  'no count before',
  /** A region that forgot, too, proves nothing. */
  'forgetful regions',
  /** Nothing is granted to a region that knows no home. */
  'a known home',
  /** What an instance knows of the home outlives what its server knew. */
  'the memory of instances',
  /** Replies of an older home are not taken. */
  'the newest home',
  /** … nor those of another server with the same number. */
  'one home of a number',
  /** Units are used before the window ends in which they were charged. */
  'the end of the window',
  /** Units lapse. */
  'the lifetime',
  /** The home counts units for longer, by their lifetime. */
  'stricter parameters',
  /** Nothing comes back that was charged before the record began: a reset ends it. */
  'returns of a record',
  /** What an exchange brings that was on its way when the region heard of a reset goes back. */
  'the end of grants',
  /** What was charged in the future was charged before the clock was set back. */
  'no grants of the future',
] as const;
export type Guard = (typeof GUARDS)[number];

export interface Terms {
  /** Calendar windows begin at whole multiples of the interval. */
  readonly kind: 'calendar' | 'fixed' | 'log';
  readonly quota: number;
  readonly interval: number;
  readonly lifetime: number;
  readonly silent: number;
  readonly without?: Guard;
}

export const NONE = 0;

/** Times and units that were charged; of a window, its start and its count. */
export type Counter = [time: number, units: number][];

interface KnownRegion {
  calls: number;
  seen: number;
  server: number;
  heard: number;
}

/** What the home remembers of the last exchange of a region about a counter. */
interface Entry {
  last: number;
  origin: number;
  units: number;
  chargedAt: number;
  window: number;
  total: number;
  /** When it began: what was charged before was forgotten by a reset. */
  since: number;
}

export interface HomeData {
  history: number;
  epoch: number;
  since: number;
  survived: number;
  lost: number;
  regions: Record<string, KnownRegion>;
  records: Record<string, Entry>;
  counter: Counter;
}

export type Grants = [units: number, chargedAt: number, expiresAt: number][];

/** What the server of a region keeps of a counter. */
export interface Pool {
  history: number;
  id: number;
  isOpen: boolean;
  sentAt: number;
  want: number;
  /** What the largest check lacks that waits: all that wait cost one unit. */
  need: number;
  charge: number;
  back: [units: number, chargedAt: number][];
  grants: Grants;
  owed: number;
  window: number;
  granted: number;
  /** When the window had begun whose units it holds, by the home and by the region; 0 where units do not end with a window. */
  begun: number;
  begunHere: number;
  /** When the first units were charged that came, by the home, and when they came, by the region. */
  first: number;
  firstHere: number;
}

/** What a region knows of its home. */
export interface Known {
  history: number;
  epoch: number;
  calls: number;
}

export interface Caller extends Known {
  region: string;
  server: number;
}

export interface Wish {
  id: number;
  origin: number;
  want: number;
  need: number;
  charge: number;
  window: number;
  granted: number;
  back: [units: number, chargedAt: number][];
}

export interface Reply extends Known {
  outcome: number;
  now: number;
  units: number;
  chargedAt: number;
  left: number;
  window: number;
  granted: number;
  last: number;
}

/** The times of a decision in a region: by its own clock, and the latest that the home's can be. */
export interface Times {
  readonly now: number;
  readonly homeNow: number;
}

export const emptyHome = (): HomeData => ({
  history: NONE,
  epoch: 0,
  since: 0,
  survived: 0,
  lost: 0,
  regions: {},
  records: {},
  counter: [],
});

export const unknownHome = (): Known => ({ history: NONE, epoch: 0, calls: 0 });

const emptyPool = (history: number, id = 0): Pool => ({
  history,
  id,
  isOpen: false,
  sentAt: 0,
  want: 0,
  need: 0,
  charge: 0,
  back: [],
  grants: [],
  owed: 0,
  window: 0,
  granted: 0,
  begun: 0,
  begunHere: 0,
  first: 0,
  firstHere: 0,
});

export class Protocol {
  constructor(private readonly terms: Terms) {}

  private has(guard: Guard): boolean {
    return this.terms.without !== guard;
  }

  /** For how long a charge counts. */
  get counted(): number {
    const { kind, interval, lifetime } = this.terms;
    return kind === 'log' && this.has('stricter parameters') ? interval + lifetime : interval;
  }

  // The counter.

  open(counter: Counter, now: number): Counter {
    const { kind, interval } = this.terms;
    const last = counter.at(-1);
    if (last === undefined) return [];
    if (kind === 'calendar') return last[0] === now - (now % interval) ? [[...last]] : [];
    if (kind === 'fixed') return now < last[0] + interval ? [[...last]] : [];
    const time = Math.max(now, last[0]);
    const counting = counter
      .filter(([at]) => at > time - this.counted)
      .map(([at, units]): [number, number] => [at, units]);
    return this.isCollapsed(counter, now) ? [[now, used(counting)]] : counting;
  }

  /** The clock was set back so far that all counts as charged now. */
  private isCollapsed(counter: Counter, now: number): boolean {
    return this.terms.kind === 'log' && counter.length > 0 && counter.at(-1)![0] - now >= this.counted;
  }

  private take(counter: Counter, now: number, units: number): void {
    const { kind, interval } = this.terms;
    const last = counter.at(-1);
    const time = kind === 'calendar' ? now - (now % interval) : Math.max(now, last?.[0] ?? now);
    if (last !== undefined && (kind !== 'log' || last[0] === time)) last[1] += units;
    else counter.push([time, units]);
  }

  private give(counter: Counter, now: number, units: number, chargedAt: number): void {
    const { kind } = this.terms;
    if (counter.length === 0) return;
    const time = Math.max(now, counter.at(-1)![0]);
    if (kind === 'log' ? chargedAt <= time - this.counted : chargedAt < counter[0]![0]) return;
    for (const charge of counter) {
      const given = Math.min(units, charge[1]);
      charge[1] -= given;
      units -= given;
    }
  }

  resetAfter(counter: Counter, now: number): number {
    const last = counter.filter(([, units]) => units > 0).at(-1);
    return last === undefined ? 0 : last[0] + this.counted - now;
  }

  /** When nothing counts any more that was charged until then. */
  private endOf(time: number, windowStart: number): number {
    return this.terms.kind === 'calendar' ? windowStart + this.terms.interval : time + this.counted;
  }

  // The region.

  /** What was stored, as of a history of the server. */
  poolOf(stored: Pool | undefined, history: number): Pool {
    if (stored === undefined) return emptyPool(history);
    if (stored.history === history) return stored;
    if (!this.has('the history of a region')) return { ...stored, history };
    return emptyPool(history, stored.id);
  }

  isUsable([, chargedAt, expiresAt]: Grants[number], { sentAt }: Pool, { now, homeNow }: Times): boolean {
    if (this.has('no grants of the future') && chargedAt > homeNow) return false;
    // That time comes again: so by the region's clock, too, no grant outlives the last call.
    const isOld = now - sentAt > this.terms.lifetime && this.has('no grants of the future') && this.has('the lifetime');
    return !isOld && homeNow < expiresAt;
  }

  usable(pool: Pool, times: Times): number {
    return pool.grants.reduce((sum, grant) => (this.isUsable(grant, pool, times) ? sum + grant[0] : sum), -pool.owed);
  }

  /** Takes units, whether they are there or not. Returns when each of those that are there was charged. */
  spend(pool: Pool, times: Times, cost: number): number[] {
    const charged: number[] = [];
    let owed = cost;
    while (owed > 0) {
      const [first] = pool.grants
        .filter((grant) => grant[0] > 0 && this.isUsable(grant, pool, times))
        .toSorted(([, , one], [, , other]) => one - other);
      if (first === undefined) break;
      first[0]--;
      owed--;
      charged.push(first[1]);
    }
    pool.owed += owed;
    compact(pool);
    return charged;
  }

  refund(pool: Pool, { now, homeNow }: Times, units: number, chargedAt: number): void {
    const paid = Math.min(units, pool.owed);
    pool.owed -= paid;
    if (units === paid) return;
    const earliest = homeNow - Math.max(0, now - chargedAt) - this.terms.lifetime;
    // What was charged since the window began is of it: older grants had expired.
    const isOfWindow = pool.begun > 0 && chargedAt >= pool.begunHere && chargedAt <= now;
    const isOfFirst = pool.first > 0 && chargedAt >= pool.firstHere && chargedAt <= now;
    const at = Math.max(1, earliest, isOfWindow ? pool.begun : 0, isOfFirst ? pool.first : 0);
    const dead = pool.grants.find(([, , expiresAt]) => expiresAt === 0);
    if (dead === undefined) pool.grants.push([units - paid, at, 0]);
    else {
      dead[0] += units - paid;
      dead[1] = Math.min(at, dead[1]);
    }
  }

  /** Whether there is an exchange to make. */
  isDue(pool: Pool, times: Times, waiting: number): boolean {
    const here = this.usable(pool, times);
    return here !== waiting || pool.owed > 0 || pool.grants.some((grant) => !this.isUsable(grant, pool, times));
  }

  /** Begins an exchange, or sends the open one again; nothing if there is none to make. */
  ask(pool: Pool, times: Times, waiting: number): Wish | undefined {
    if (!pool.isOpen) {
      const here = this.usable(pool, times);
      const back: Pool['back'] = [];
      let excess = here - waiting;
      for (const grant of pool.grants.toReversed()) {
        let units = grant[0];
        if (this.isUsable(grant, pool, times)) {
          units = Math.max(0, Math.min(units, excess));
          excess -= units;
        }
        if (units === 0) continue;
        back.push([units, grant[1]]);
        grant[0] -= units;
      }
      const want = Math.max(0, waiting - here);
      if (want === 0 && back.length === 0 && pool.owed <= 0) return undefined;
      Object.assign(pool, {
        id: Math.max(pool.id + 1, times.homeNow),
        isOpen: true,
        back,
        want,
        charge: pool.owed,
        owed: 0,
      });
      pool.need = Math.max(0, Math.min(want, 1 - here));
    }
    compact(pool);
    pool.sentAt = times.now;
    const { id, history: origin, want, need, charge, window, granted, back } = pool;
    return { id, origin, want, need, charge, window, granted, back };
  }

  /** The counter was reset at home: all that is held goes back, also what an exchange on its way brings. */
  forget(pool: Pool): void {
    if (pool.id === 0 && pool.owed === 0 && pool.grants.length === 0) return;
    Object.assign(pool, { owed: 0, charge: 0 });
    this.forgetGrants(pool);
    compact(pool);
  }

  private forgetGrants(pool: Pool): void {
    for (const grant of pool.grants) grant[2] = 0;
    Object.assign(pool, { window: 0, granted: 0, begun: 0, begunHere: 0, first: 0, firstHere: 0 });
  }

  /** Returns whether the reply was taken. */
  deposit(pool: Pool, { id, origin }: Wish, reply: Reply, now: number, wasReset = false): boolean {
    const { outcome, now: homeNow, units, chargedAt, window, granted, last } = reply;
    const isOrigin = !this.has('the history of an exchange') || pool.history === origin;
    if (this.has('the open exchange') && !(pool.isOpen && pool.id === id && isOrigin)) return false;
    if (this.terms.kind === 'log' || window <= homeNow) Object.assign(pool, { begun: 0, begunHere: 0 });
    else if (window !== pool.window || pool.begun === 0) Object.assign(pool, { begun: homeNow, begunHere: now });
    Object.assign(pool, {
      isOpen: false,
      back: [],
      want: 0,
      need: 0,
      charge: 0,
      id: Math.max(pool.id, last),
      window,
      granted,
    });
    let expiresAt = this.has('the lifetime') ? chargedAt + this.terms.lifetime : Number.MAX_SAFE_INTEGER;
    if (this.terms.kind !== 'log' && this.has('the end of the window')) expiresAt = Math.min(expiresAt, window);
    if (outcome === 2) {
      expiresAt = 0;
      for (const grant of pool.grants) grant[2] = 0;
    }
    if (units > 0) {
      pool.grants.push([units, chargedAt, expiresAt]);
      if (pool.first === 0) Object.assign(pool, { first: chargedAt, firstHere: now });
    }
    if (wasReset && this.has('the end of grants')) this.forgetGrants(pool);
    compact(pool);
    return true;
  }

  /** What a region knows of the home after a reply; `undefined` if a newer server has taken the place of the one that replied. */
  note(known: Known, { history, epoch, calls }: Known): Known | undefined {
    const isOther = epoch === known.epoch && history !== known.history && this.has('one home of a number');
    if (isOther || (epoch < known.epoch && this.has('the newest home'))) return undefined;
    return { history, epoch, calls: Math.max(calls, known.calls) };
  }

  /** What a call says that the region knows: what its server does, or the instance, whichever is newer. */
  newest(read: Known, memory: Known): Known {
    if (!this.has('the memory of instances')) return read;
    const { history, epoch } = read.epoch < memory.epoch ? memory : read;
    return { history, epoch, calls: Math.max(read.calls, memory.calls) };
  }

  // The home.

  /** Hears of a region, as of a history of the server. Returns what the reply says of the home, and until when nothing is granted. */
  hear(
    home: HomeData,
    server: number,
    caller: Caller,
    now: number,
  ): { readonly known: Known; readonly ends: number; isHeard: boolean } {
    const { region, history, epoch, calls } = caller;
    home.lost = Math.min(home.lost, now);
    if (home.history !== server) {
      const isNew = Object.keys(home.regions).length === 0;
      if (isNew && history !== NONE) home.lost = now;
      home.survived = Math.max(home.survived, ...Object.values(home.regions).map(({ seen }) => seen));
      Object.assign(home, { history: server, epoch: home.epoch + 1, since: now });
    }
    if (history !== server && epoch >= home.epoch) Object.assign(home, { epoch: epoch + 1, since: now });
    const { silent } = this.terms;
    const before = home.regions[region] ?? { calls: 0, seen: 0, server: NONE, heard: 0 };
    if (calls > before.calls && this.has('the number of calls')) home.lost = now;
    const forgot = this.has('forgetful regions') && (history === NONE || before.server !== caller.server);
    if (forgot && before.heard !== home.epoch && before.seen > 0 && before.seen > home.survived - silent)
      home.lost = now;
    const isHeard = (history === server && epoch === home.epoch) || history === NONE;
    const heard = isHeard ? home.epoch : before.heard;
    home.regions[region] = {
      calls: Math.max(calls, before.calls) + (heard === home.epoch || !this.has('no count before') ? 1 : 0),
      seen: now,
      server: caller.server,
      heard,
    };
    const areHeard =
      !this.has('the regions to be heard') ||
      Object.entries(home.regions).every(
        ([name, { heard, seen }]) => heard === home.epoch || (seen <= home.survived - silent && name !== region),
      );
    const start = this.terms.kind === 'calendar' ? now - (now % this.terms.interval) : 0;
    let ends = home.lost > 0 && home.lost >= start ? this.endOf(home.lost, start) : 0;
    if (!areHeard && home.since >= start) ends = Math.max(ends, this.endOf(home.since, start));
    return {
      known: { history: server, epoch: home.epoch, calls: home.regions[region].calls },
      ends,
      isHeard: areHeard,
    };
  }

  hello(home: HomeData, server: number, caller: Caller, now: number): Known {
    return this.hear(home, server, caller, now).known;
  }

  /** Makes an exchange, or replies to one that was made. Returns what became of each unit that came back, too. */
  grant(
    home: HomeData,
    server: number,
    caller: Caller,
    wish: Wish,
    now: number,
  ): { readonly reply: Reply; readonly isMade: boolean; readonly given: number } {
    const { known, ends } = this.hear(home, server, caller, now);
    const { quota } = this.terms;
    const counter = this.open(home.counter, now);
    const { [caller.region]: record } = home.records;
    const remaining = () => quota - used(counter);
    const windowEnd = () => now + this.resetAfter(counter, now);
    let { last, origin, units, chargedAt, window, total, since } = record ?? {
      last: 0,
      origin: NONE,
      units: 0,
      chargedAt: 0,
      window: 0,
      total: 0,
      since: now,
    };
    let outcome = 0;
    let given = 0;
    let isChanged = this.isCollapsed(home.counter, now);
    const isOther = this.has('the history of an exchange') && origin !== wish.origin;
    const isMade = wish.id > last || !this.has('the number of an exchange');
    if (isMade) {
      if (window !== windowEnd()) total = 0;
      const missing =
        record !== undefined && wish.window > 0 && wish.window === windowEnd() ? Math.max(0, wish.granted - total) : 0;
      for (const [back, at] of wish.back) {
        const before = remaining();
        isChanged = true;
        const isOfRecord = at >= since || !this.has('returns of a record');
        if (isOfRecord && (at <= now || !this.has('no grants of the future'))) this.give(counter, now, back, at);
        given += remaining() - before;
        total = Math.max(0, total - (remaining() - before));
      }
      const owed = Math.max(0, Math.min(wish.charge + missing, quota + remaining()));
      if (owed > 0) this.take(counter, now, owed);
      const mayGrant = now >= ends && (caller.history !== NONE || !this.has('a known home'));
      const wanted = remaining() >= wish.need ? wish.want : wish.want - wish.need;
      units = mayGrant ? Math.max(0, Math.min(wanted, remaining())) : 0;
      if (units > 0) this.take(counter, now, units);
      total += owed + units;
      isChanged ||= owed + units > 0;
      ({ id: last, origin } = wish);
      chargedAt = now;
      window = windowEnd();
      home.records[caller.region] = { last, origin, units, chargedAt, window, total, since };
    } else if (wish.id < last || isOther) {
      outcome = 1;
      units = chargedAt = 0;
    }
    if (isChanged) home.counter = counter.filter(([, charged]) => charged > 0);
    const left = Math.max(0, remaining());
    return { reply: { ...known, outcome, now, units, chargedAt, left, window, granted: total, last }, isMade, given };
  }
}

export function used(counter: Counter): number {
  return counter.reduce((sum, [, units]) => sum + units, 0);
}

/** More grants than can be kept apart become one that is as old as the oldest of them. */
const MOST_GRANTS = 6;

function compact(pool: Pool): void {
  const kept = pool.grants.filter(([units]) => units > 0);
  while (kept.length > MOST_GRANTS) {
    const [first, second] = kept.splice(0, 2) as [Grants[number], Grants[number]];
    kept.unshift([first[0] + second[0], Math.min(first[1], second[1]), Math.min(first[2], second[2])]);
  }
  pool.grants = kept;
}
