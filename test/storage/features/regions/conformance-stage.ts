import { expect } from '@jest/globals';
import { Redis } from 'ioredis';
import { atHome, limitRegionsOf } from '../../../../lib/storage/features/regions/limit-regions.js';
import { endsWithWindow, horizonOf } from '../../../../lib/storage/features/regions/terms.js';
import { type AlgorithmOptions, RedisStore } from '../../../../lib/index.js';
import type { Counter } from '../../../../lib/engine/limits/counter.js';
import type { Reply as ScriptReply } from '../../../../lib/storage/stores/redis/reply.js';
import type { RedisServer } from '../../../support/redis/redis-servers.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { featuresOfOptions, featureTerms } from '../../../support/limits/stores.js';
import {
  type Caller,
  emptyHome,
  type HomeData,
  type Known,
  type Pool,
  Protocol,
  type Reply,
  type Terms,
  type Times,
  unknownHome,
  used,
  type Wish,
} from './protocol-model.js';

/** A limit in microseconds, as the model has it, and as the library has it. */
export interface Kind {
  readonly terms: Pick<Terms, 'kind' | 'quota' | 'interval'>;
  readonly options: AlgorithmOptions;
}

/** With what another server takes over. */
export type Left = 'all' | 'copy' | 'nothing';

const SILENT = 600_000_000;
const NAMES = ['A', 'B'] as const;
const FRAGMENT = 'regions';

/** What a server stores in MessagePack, whose numbers JSON could not hold. */
const UNPACK = `
local function text(value)
  if type(value) ~= 'table' then return string.format('%.0f', value) end
  local all = {}
  for i = 1, #value do all[i] = text(value[i]) end
  return all
end
local stored = redis.call('GET', KEYS[1])
return stored and text(cmsgpack.unpack(stored)) or false`;

type Texts = readonly (string | Texts)[];
type Dump = readonly [key: string, value: Buffer][];

/** A real server, and its clock. */
interface Place {
  readonly redis: Redis;
  micros: number;
}

interface HomeSide {
  readonly place: Place;
  readonly store: RedisStore;
  history: number;
  data: HomeData;
  copy?: { readonly data: HomeData; readonly dump: Dump };
}

interface RegionSide {
  readonly place: Place;
  readonly store: RedisStore;
  history: number;
  pool: Pool | undefined;
  known: Known;
  /** When units were charged that can be given back. */
  charges: number[];
  copy?: { readonly pool: Pool | undefined; readonly known: Known; readonly dump: Dump };
}

interface Letter {
  readonly region: number;
  readonly wish: Wish;
  readonly caller: Caller;
}

interface Answer {
  readonly region: number;
  readonly wish: Wish;
  readonly reply: Reply;
  /** As the script replied. */
  readonly numbers: readonly number[];
}

/** Servers for histories of the protocol: the home, and two regions. */
export interface Servers {
  readonly home: RedisServer;
  readonly regions: readonly RedisServer[];
}

/** A history of the protocol on real servers, compared step by step with the model. */
export class ConformanceStage {
  private readonly protocol: Protocol;
  private readonly lifetime: number;
  private readonly home: HomeSide;
  private readonly regions: readonly RegionSide[];
  private readonly counter: Counter;
  private readonly homeCounter: Counter;
  private readonly letters: Letter[] = [];
  private readonly answers: Answer[] = [];
  /** The time of the home is known to so many microseconds. */
  private doubted = 0;

  private constructor(
    private readonly kind: Kind,
    private readonly prefix: string,
    home: Place,
    regions: readonly Place[],
  ) {
    const features = featureTerms({ ...kind.options, scope: 'world' }, 'test');
    const limit = new CompiledLimit(kind.options, { location: 'test', name: 'api', featuresOfOptions, features });
    this.lifetime = limitRegionsOf(limit)!.lifetime;
    this.protocol = new Protocol({ ...kind.terms, lifetime: this.lifetime, silent: SILENT });
    this.counter = { limit, identity: 'user:1' };
    this.homeCounter = { limit: atHome(limit), identity: 'user:1' };
    this.home = { place: home, store: this.storeOn(home), history: 0, data: emptyHome() };
    this.regions = regions.map((place) => ({
      place,
      store: this.storeOn(place),
      history: 0,
      pool: undefined,
      known: unknownHome(),
      charges: [],
    }));
  }

  static async open(kind: Kind, { home, regions }: Servers, prefix: string): Promise<ConformanceStage> {
    const places = await Promise.all([home, ...regions].map(connected));
    const stage = new ConformanceStage(kind, prefix, places[0]!, places.slice(1));
    for (const side of [stage.home, ...stage.regions]) side.history = await historyOf(side.place);
    return stage;
  }

  async close(): Promise<void> {
    for (const { place, store } of [this.home, ...this.regions]) {
      await store.close();
      place.redis.disconnect();
    }
  }

  // The steps of a history.

  pass(micros: number): void {
    for (const { place } of [this.home, ...this.regions]) place.micros += micros;
  }

  setHomeBack(micros: number): void {
    this.home.place.micros -= micros;
  }

  doubt(micros: number): void {
    this.doubted = micros;
  }

  async ask(index: number, waiting: number): Promise<void> {
    const region = this.regions[index]!;
    const pool = this.poolOf(index);
    const wish = this.protocol.ask(pool, this.times(index), waiting);
    // Each check that waits costs a unit, so that any number helps. Nothing is wanted in advance, and an open exchange is sent again.
    const numbers = await this.inRegion(index, ['ask', waiting, 1, 0, 0, 0], (reply) =>
      reply.wait() === 3 ? [...reply.numbers(Array.from({ length: 9 }, () => 0))!, ...reply.pairs()] : [],
    );
    if (wish === undefined) {
      expect(numbers).toEqual([]);
    } else {
      region.pool = pool;
      const { id, origin, want, need, charge, window, granted, back } = wish;
      // All that is wanted is waited for.
      const held = Math.max(0, this.protocol.usable(pool, this.times(index)));
      expect(numbers).toEqual([id, origin, want, want, need, charge, window, granted, held, ...back.flat()]);
      this.letters.push({ region: index, wish: structuredClone(wish), caller: this.callerOf(index) });
    }
    await this.compareRegion(index);
  }

  /** A message arrives at home; unless it is the last time, it may arrive again. */
  async grant(which: number, isLast: boolean): Promise<void> {
    const letter = taken(this.letters, which, isLast);
    if (letter === undefined) return;
    const { region, wish, caller } = letter;
    const { data, history, place, store } = this.home;
    const { reply } = this.protocol.grant(data, history, caller, wish, place.micros);
    const { algorithm, parameters } = this.homeCounter.limit;
    const horizon = horizonOf(algorithm, parameters, place.micros);
    const { id, origin, want, need, charge, window, granted, back } = wish;
    const numbers = await store.ofFeature(
      this.homeCounter,
      {
        name: FRAGMENT,
        keys: [this.recordKey(caller.region), this.hash],
        values: ([record, hash]) => [
          'grant',
          record!,
          hash!,
          ...naming(caller),
          horizon,
          id,
          origin,
          // All that is wanted is waited for.
          want,
          want,
          need,
          charge,
          window,
          granted,
          0,
          back.length,
          ...back.flat(),
        ],
      },
      (answer) => answer.numbers([0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0]),
    );
    expect(replyFrom(numbers)).toEqual(reply);
    this.answers.push({ region, wish, reply, numbers });
    await this.compareHome();
  }

  /** The home's reply is noted and deposited; unless it is the last time, it may come again. */
  async deposit(which: number, isLast: boolean, wasReset = false): Promise<void> {
    const answer = taken(this.answers, which, isLast);
    if (answer === undefined) return;
    const { region: index, wish, reply, numbers } = answer;
    if (!this.note(index, reply)) return;
    const pool = this.poolOf(index);
    const isTaken = this.protocol.deposit(pool, wish, reply, this.regions[index]!.place.micros, wasReset);
    const lapses = reply.chargedAt + this.lifetime;
    const isOfWindow = endsWithWindow(limitRegionsOf(this.counter.limit)!.algorithm);
    const ends = isOfWindow ? [Math.min(lapses, reply.window), 1] : [lapses, 0];
    const [outcome, , , , ...rest] = numbers;
    const values = ['deposit', wish.id, wish.origin, outcome!, ...rest, ...ends, wasReset ? 1 : 0];
    expect(await this.inRegion(index, values, (done) => done.operation())).toBe(isTaken ? 1 : 0);
    if (isTaken) this.regions[index]!.pool = pool;
    await this.compareRegion(index);
  }

  async hello(index: number): Promise<void> {
    const { data, history, place, store } = this.home;
    const caller = this.callerOf(index);
    const known = this.protocol.hello(data, history, caller, place.micros);
    const values = ([hash]: readonly number[]) => ['hello', hash!, ...naming(caller)];
    const numbers = await store.ofFeature(this.homeCounter, { name: FRAGMENT, keys: [this.hash], values }, (answer) =>
      answer.numbers([0, 0, 0, 0, 0]),
    );
    expect(numbers.slice(0, 4)).toEqual([known.history, known.epoch, known.calls, place.micros]);
    await this.compareHome();
    this.note(index, known);
  }

  async consume(index: number, cost: number): Promise<void> {
    const region = this.regions[index]!;
    const pool = this.poolOf(index);
    const fits = cost <= this.protocol.usable(pool, this.times(index));
    this.bindTime(index);
    const [decisions] = await region.store.check([{ entries: [{ ...this.counter, cost }], refundable: true }]);
    const { allowed, chargedAt } = decisions![0]!;
    expect(allowed).toBe(fits);
    if (fits) {
      this.protocol.spend(pool, this.times(index), cost);
      region.pool = pool;
      region.charges.push(chargedAt!);
    }
    await this.compareRegion(index);
  }

  async penalize(index: number): Promise<void> {
    const region = this.regions[index]!;
    const pool = this.poolOf(index);
    if (pool.owed >= this.kind.terms.quota) return;
    this.bindTime(index);
    await region.store.penalize({ ...this.counter, units: 1 });
    this.protocol.spend(pool, this.times(index), 1);
    region.pool = pool;
    await this.compareRegion(index);
  }

  async refund(index: number): Promise<void> {
    const region = this.regions[index]!;
    const chargedAt = region.charges.pop();
    if (chargedAt === undefined) return;
    const pool = this.poolOf(index);
    this.bindTime(index);
    await region.store.refund([
      { ...this.counter, units: 1, chargedAt, ticket: undefined, source: 'redis', candidate: undefined },
    ]);
    this.protocol.refund(pool, this.times(index), 1, chargedAt);
    region.pool = pool;
    await this.compareRegion(index);
  }

  /** A region hears of a reset. */
  async forget(index: number): Promise<void> {
    const pool = this.poolOf(index);
    expect(await this.inRegion(index, ['forget'], (done) => done.operation())).toBe(1);
    this.protocol.forget(pool);
    this.regions[index]!.pool = pool;
    await this.compareRegion(index);
  }

  /** The counter is reset at home. */
  async reset(): Promise<void> {
    const { place, store, data } = this.home;
    await place.redis.del(...NAMES.map((name) => this.recordKey(name)));
    await store.reset([this.homeCounter]);
    data.records = {};
    data.counter = [];
    await this.compareHome();
  }

  async copyHome(): Promise<void> {
    this.home.copy = { data: structuredClone(this.home.data), dump: await dumpOf(this.home.place) };
  }

  async replaceHome(left: Left): Promise<void> {
    const { home } = this;
    home.history = await renewed(home.place);
    if (left === 'all') return;
    const { data, dump } = (left === 'copy' && home.copy) || { data: emptyHome(), dump: [] };
    await restore(home.place, dump);
    home.data = structuredClone(data);
    await this.compareHome();
  }

  async copyRegion(index: number): Promise<void> {
    const region = this.regions[index]!;
    const { pool, known, place } = region;
    region.copy = { pool: structuredClone(pool), known, dump: await dumpOf(place) };
  }

  async replaceRegion(index: number, left: Left): Promise<void> {
    const region = this.regions[index]!;
    region.history = await renewed(region.place);
    if (left === 'all') return;
    const { pool, known, dump } = (left === 'copy' && region.copy) || {
      pool: undefined,
      known: unknownHome(),
      dump: [],
    };
    await restore(region.place, dump);
    region.pool = structuredClone(pool);
    region.known = known;
    await this.compareRegion(index);
  }

  // Both sides.

  private storeOn(place: Place): RedisStore {
    const clock = { now: () => place.micros, slackMs: 3_600_000 };
    return new RedisStore(place.redis, { prefix: this.prefix, timeoutMs: 60_000, clock });
  }

  private get hash(): string {
    return `${this.prefix}:regions`;
  }

  private recordKey(region: string): string {
    return `${this.home.store.keyOf(this.homeCounter)}:region:${region}`;
  }

  private times(index: number): Times {
    return { now: this.regions[index]!.place.micros, homeNow: this.home.place.micros + this.doubted };
  }

  private bindTime(index: number): void {
    const latest = () => this.times(index).homeNow;
    limitRegionsOf(this.counter.limit)!.time = { latest, now: () => this.home.place.micros, region: 0 };
  }

  /** What the model's region has, to be kept if it is changed. */
  private poolOf(index: number): Pool {
    const { pool, history } = this.regions[index]!;
    return structuredClone(this.protocol.poolOf(pool, history));
  }

  private inRegion<T>(
    index: number,
    values: (number | string)[],
    read: (reply: ScriptReply) => T | undefined,
  ): Promise<T> {
    this.bindTime(index);
    return this.regions[index]!.store.ofFeature(this.counter, { name: FRAGMENT, keys: [], values: () => values }, read);
  }

  private callerOf(index: number): Caller {
    const { known, history } = this.regions[index]!;
    return { region: NAMES[index]!, server: history, ...known };
  }

  private note(index: number, reply: Known): boolean {
    const region = this.regions[index]!;
    const noted = this.protocol.note(region.known, reply);
    if (noted !== undefined) region.known = noted;
    return noted !== undefined;
  }

  private async compareRegion(index: number): Promise<void> {
    const { place, store, history } = this.regions[index]!;
    const stored = await unpacked(place, store.keyOf(this.counter));
    expect(this.protocol.poolOf(stored && poolFrom(stored), history)).toEqual(this.poolOf(index));
  }

  private async compareHome(): Promise<void> {
    const { place, store, data } = this.home;
    const texts = Object.entries(await place.redis.hgetall(this.hash));
    const regions = Object.entries(data.regions).flatMap(([name, { calls, seen, server, heard }]) => [
      [`calls:${name}`, calls],
      [`seen:${name}`, seen],
      [`server:${name}`, server],
      [`heard:${name}`, heard],
    ]);
    const { history, epoch, since, survived, lost } = data;
    const all = regions.length === 0 ? {} : { history, epoch, since, survived, lost };
    const fields = { ...all, ...Object.fromEntries(regions) };
    expect(Object.fromEntries(texts.map(([name, text]) => [name, Number(text)]))).toEqual(fields);
    for (const name of NAMES) {
      const stored = await unpacked(place, this.recordKey(name));
      const entry = data.records[name];
      const values = entry && [
        entry.last,
        entry.units,
        entry.chargedAt,
        entry.window,
        entry.total,
        entry.origin,
        entry.since,
      ];
      // What it says of the region's units is for people.
      const kept = stored && [...stored.slice(0, 6), stored[8]];
      expect(kept?.map(Number)).toEqual(values);
    }
    const [decisions] = await store.check([{ entries: [{ ...this.homeCounter, cost: 0 }], peek: true }]);
    const counter = this.protocol.open(data.counter, place.micros);
    expect(decisions![0]).toMatchObject({
      remaining: Math.max(0, this.kind.terms.quota - used(counter)),
      resetAfterMs: Math.ceil(this.protocol.resetAfter(counter, place.micros) / 1000),
    });
  }
}

/** One of the messages, which stays on its way unless it arrives for the last time. */
function taken<T>(messages: T[], which: number, isLast: boolean): T | undefined {
  const at = which % Math.max(1, messages.length);
  return isLast ? messages.splice(at, 1)[0] : messages[at];
}

function naming({ region, server, history, epoch, calls }: Caller): (number | string)[] {
  return [region, server, history, epoch, calls];
}

function replyFrom(numbers: readonly number[]): Reply {
  const [outcome, history, epoch, calls, now, units, chargedAt, left, , , window, granted, last] = numbers as number[];
  const known = { history: history!, epoch: epoch!, calls: calls! };
  const counted = { left: left!, window: window!, granted: granted!, last: last! };
  return { ...known, outcome: outcome!, now: now!, units: units!, chargedAt: chargedAt!, ...counted };
}

async function connected(server: RedisServer): Promise<Place> {
  const redis = new Redis(server.url, { lazyConnect: true });
  await redis.connect();
  await redis.flushall();
  return { redis, micros: 1_790_000_123_456_789 };
}

async function historyOf({ redis }: Place): Promise<number> {
  const [, id] = /master_replid:(\w+)/.exec(await redis.info('replication'))!;
  return Number.parseInt(id!.slice(0, 12), 16);
}

/** Begins another history, as a restart or a promotion does. */
async function renewed(place: Place): Promise<number> {
  await place.redis.call('DEBUG', 'CHANGE-REPL-ID');
  return historyOf(place);
}

async function unpacked({ redis }: Place, key: string): Promise<Texts | undefined> {
  return ((await redis.eval(UNPACK, 1, key)) as Texts | null) ?? undefined;
}

async function dumpOf({ redis }: Place): Promise<Dump> {
  const keys = await redis.keys('*');
  return Promise.all(keys.map(async (key): Promise<[string, Buffer]> => [key, await redis.dumpBuffer(key)]));
}

async function restore({ redis }: Place, dump: Dump): Promise<void> {
  await redis.flushall();
  for (const [key, value] of dump) await redis.restore(key, 0, value);
}

function poolFrom(stored: Texts): Pool {
  const number = (i: number) => Number(stored[i - 1]);
  const rows = <T>(i: number, width: number): T[] => {
    const values = (stored[i - 1] as Texts).map(Number);
    return Array.from({ length: values.length / width }, (_, row) => values.slice(row * width, (row + 1) * width) as T);
  };
  return {
    history: number(1),
    id: number(2),
    isOpen: number(3) === 1,
    sentAt: number(4),
    want: number(5),
    need: number(21),
    charge: number(7),
    back: rows(8, 2),
    grants: rows(9, 3),
    owed: number(19),
    window: number(13),
    granted: number(14),
    begun: number(26),
    begunHere: number(27),
    first: number(29),
    firstHere: number(30),
  };
}
