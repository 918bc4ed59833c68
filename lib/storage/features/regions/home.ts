import { createHash } from 'node:crypto';
import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { RegionHolding } from '../../../engine/limits/key-reports.js';
import { regionKeys, regionsIn } from '../../stores/redis/keys.js';
import type { CircuitReport } from '../../stores/layers/circuit.js';
import { type Layer, layerOf } from '../../stores/layers/store-layer.js';
import { RedisStore } from '../../stores/redis/redis.store.js';
import type { Reply } from '../../stores/redis/reply.js';
import { worldMessages } from './messages.js';
import { HomeClock, Waits } from './home-clock.js';
import type { Caller, HomeRecord, KnownHome } from './home-record.js';
import { horizonOf } from './terms.js';
import { ignoreConnectionErrors } from '../../redis/client.js';
import { InstanceChannel } from '../../redis/instance-channel.js';
import type { HomeServer } from '../feature.js';

/** The name of the script. */
export const FRAGMENT = 'regions';

/**
 * The units of a counter that a region requests from the home: the reply of its script to `ask`, which is sent to the home unchanged. It
 * begins with the number of the exchange, and the history of the region's server when it began. `lua/features/regions.lua` lists all numbers.
 */
export type Wish = readonly [id: number, origin: number, ...others: number[]];

/** The home's answer. Times are in microseconds of its own clock; `lua/features/regions.lua` describes each number. */
export interface Grant {
  readonly units: number;
  readonly chargedAt: number;
  readonly window: number;
  /** The numbers of the answer that the region's script gets, in the order of `GRANT`. */
  readonly numbers: readonly number[];
}

/** The numbers that the script replies to a region, in their order, each with its least value. */
const HELLO = { history: 0, epoch: 0, calls: 0, now: 0, isHeard: 0 };
const GRANT = {
  outcome: 0,
  history: 0,
  epoch: 0,
  calls: 0,
  now: 0,
  units: 0,
  chargedAt: 0,
  left: 0,
  wait: -1,
  resetAfter: 0,
  window: 0,
  granted: 0,
  last: 0,
};
const HOLDING = { granted: 0, held: -1, ageMs: 0, seenMs: -1 };

/** The home: the server whose counters count for all regions, as one instance of a region knows it. */
export class Home {
  readonly clock: HomeClock;
  private readonly waits = new Waits();
  /** The latest failure, until the home answers again. */
  private failure: RateLimitStoreError | undefined;
  /** The reasons that were reported since the home last answered. */
  private readonly reported = new Set<string>();
  /** The home according to the answers that this instance got. A region whose server lost its data doesn't know the home any more. */
  private known: KnownHome = { history: 0, epoch: 0, calls: 0 };
  /** The last known history of the region's server. */
  private server = 0;

  /** The same store, for checks and operations. */
  readonly layer: Layer;

  constructor(
    readonly store: RedisStore,
    /** The hash in which the home records the calls of regions. */
    private readonly hash: string,
    readonly region: string,
    private readonly record: HomeRecord,
    patienceMs: number,
    private readonly report: (news: CircuitReport) => void,
  ) {
    this.layer = layerOf(store);
    this.clock = new HomeClock(patienceMs, numberOf(region));
  }

  /** True while the home doesn't answer. Checks don't wait for it then. */
  get isCut(): boolean {
    return this.failure !== undefined || this.waits.areSuspicious;
  }

  /** The error of a check for which the home grants no units, with the latest failure as its cause. */
  cutOff(): RateLimitStoreError {
    return cutOff(this.failure);
  }

  /** The usual latency of the home, in milliseconds. */
  get latencyMs(): number {
    return this.waits.usualMs;
  }

  /** Connects and loads the script. Never rejects. */
  async open(): Promise<void> {
    await this.store.open().catch((error: unknown) => this.failed(error));
  }

  /** Reports the region to the home, and gets its time. `counter` is any counter at home. */
  async hello(counter: Counter): Promise<void> {
    const known = await this.caller();
    const askedAt = performance.now();
    const numbers = await this.call(
      counter,
      [this.hash],
      ([hash]) => ['hello', hash!, ...this.naming(known)],
      Object.values(HELLO),
    );
    const { history, epoch, calls, now } = named(HELLO, numbers);
    this.clock.set(now, askedAt);
    const isCurrent = await this.note({ history, epoch, calls });
    // The home was replaced by another server, which grants nothing until the region knows it.
    if (isCurrent && known.history !== 0 && history !== known.history) await this.hello(counter);
  }

  /** Requests units of a counter and returns others. Resolves to `undefined` if the home was replaced in the meantime. */
  async grant(counter: Counter, wish: Wish): Promise<Grant | undefined> {
    let known = await this.caller();
    // Units are granted only to regions that know their home.
    if (known.history === 0) {
      await this.hello(counter);
      known = await this.caller();
    }
    const { algorithm, parameters } = counter.limit;
    const key = recordKey(this.store.keyOf(counter), this.region);
    const horizon = horizonOf(algorithm, parameters, this.clock.now());
    const askedAt = performance.now();
    const numbers = await this.call(
      counter,
      [key, this.hash],
      ([record, hash]) => ['grant', record!, hash!, ...this.naming(known), horizon, ...wish],
      Object.values(GRANT),
    );
    const { history, epoch, calls, ...granted } = named(GRANT, numbers);
    this.clock.set(granted.now, askedAt);
    if (!(await this.note({ history, epoch, calls }))) return undefined;
    if (known.history !== 0 && history !== known.history) void this.hello(counter).catch(() => undefined);
    return { ...granted, numbers: Object.values(granted) };
  }

  /** Clears a counter and the exchanges of its regions in one step. Units that are returned later are ignored if they were granted before. */
  async reset(counter: Counter): Promise<boolean> {
    const key = this.store.keyOf(counter);
    const names = await this.regions();
    return this.store.forget(
      counter,
      names.map((name) => recordKey(key, name)),
    );
  }

  /** The units of a counter that each region holds, according to the home's records. */
  async holdings(counter: Counter): Promise<RegionHolding[]> {
    const key = this.store.keyOf(counter);
    const names = await this.regions();
    const records = names.map((name) => recordKey(key, name));
    const numbers = await this.call(
      counter,
      [this.hash, ...records],
      ([hash, ...each]) => ['holdings', hash!, ...each.flatMap((number, index) => [number, names[index]!])],
      names.flatMap(() => Object.values(HOLDING)),
    );
    return names.map((region, index) => {
      const { granted, held, ageMs, seenMs } = named(HOLDING, numbers.slice(index * Object.keys(HOLDING).length));
      return { region, held: Math.max(0, held), granted, ...(held >= 0 && { ageMs }), ...(seenMs >= 0 && { seenMs }) };
    });
  }

  /** The names of all regions that have called the home. */
  private async regions(): Promise<string[]> {
    return regionsIn(await this.store.membersOf(this.hash)).toSorted();
  }

  /** The home as recorded by the region or known to this instance, whichever is newer. */
  private async caller(): Promise<Caller> {
    const read = await this.record.read();
    // If a server has lost nothing else, the record was deleted on purpose, and operators accept that.
    if (read.history === 0 && read.server === this.server) this.known = { history: 0, epoch: 0, calls: 0 };
    this.server = read.server;
    const { history, epoch } = read.epoch < this.known.epoch ? this.known : read;
    return { server: read.server, history, epoch, calls: Math.max(read.calls, this.known.calls) };
  }

  private naming({ server, history, epoch, calls }: Caller): (number | string)[] {
    return [this.region, server, history, epoch, calls];
  }

  /** Records the home of an answer. Returns true if the answer is from the newest server. */
  private async note(home: KnownHome): Promise<boolean> {
    if (isOlder(home, this.known) || !(await this.record.note(home))) return false;
    // Answers that arrive together are recorded in any order.
    const { history, epoch } = home.epoch < this.known.epoch ? this.known : home;
    this.known = { history, epoch, calls: Math.max(home.calls, this.known.calls) };
    return true;
  }

  private async call(
    counter: Counter,
    keys: readonly string[],
    values: (keys: readonly number[]) => (number | string)[],
    least: readonly number[],
  ): Promise<number[]> {
    const wait = this.waits.begin(performance.now());
    try {
      const read = (reply: Reply) => reply.numbers(least);
      const numbers = await this.store.ofFeature(counter, { name: FRAGMENT, keys, values }, read);
      this.waits.end(wait, true);
      if (this.failure !== undefined) this.recovered();
      return numbers;
    } catch (error) {
      this.waits.end(wait, false);
      this.failed(error);
      throw error instanceof RateLimitStoreError ? cutOff(error) : error;
    }
  }

  private failed(error: unknown): void {
    if (!(error instanceof RateLimitStoreError)) return;
    this.failure = error;
    // Texts about one outage of the connection vary. A missing right is named in the text.
    const reason = error.code === 'SLUICE_REDIS_RIGHTS' ? error.message : error.code;
    if (this.reported.has(reason)) return;
    this.reported.add(reason);
    this.report({ state: 'failing', error });
  }

  private recovered(): void {
    this.failure = undefined;
    this.reported.clear();
    this.report({ state: 'recovered' });
  }
}

/**
 * Returns true if an answer is from a server that was replaced. If two servers have the same number, the one that answered later is newer.
 */
function isOlder(home: KnownHome, known: KnownHome): boolean {
  return home.epoch < known.epoch || (home.epoch === known.epoch && home.history !== known.history);
}

/** The key of the home's record about a counter of a region. */
function recordKey(key: string, region: string): string {
  return `${key}:region:${region}`;
}

/** The numbers of a reply by their names. */
function named<Name extends string>(names: Readonly<Record<Name, number>>, numbers: readonly number[]) {
  return Object.fromEntries(Object.keys(names).map((name, index) => [name, numbers[index]])) as Record<Name, number>;
}

/** A 48-bit hash of a name. */
function numberOf(name: string): number {
  return createHash('sha1').update(name).digest().readUIntBE(0, 6);
}

function cutOff(cause: Error | undefined): RateLimitStoreError {
  return new RateLimitStoreError(worldMessages.cut(), { ...(cause && { cause }), code: 'SLUICE_HOME_UNREACHABLE' });
}

/** The counters of a home, and the channel on which their ends are published. */
export function homeStoreOn({ connection, ownsClient, prefix, timeoutMs }: HomeServer) {
  const { atHome, ended } = regionKeys(prefix);
  const release = ignoreConnectionErrors(connection);
  const store = new RedisStore(connection, {
    prefix: atHome,
    timeoutMs,
    ownsClient,
    ...(ownsClient ? {} : { release }),
  });
  return { store, channel: new InstanceChannel(connection, ended, timeoutMs) };
}
