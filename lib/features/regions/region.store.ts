import { RateLimitStoreError } from '../../errors/errors.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';
import type { InstanceChannel, Listener } from '../../redis/instance-channel.js';
import { allOrNothing, takeOf } from '../../stores/all-or-nothing.js';
import { answerWith, decided, operate, report } from '../../stores/decide.js';
import { StoreLayer } from '../../stores/layers/store-layer.js';
import type { LocalDecisions } from '../../stores/layers/local-decisions.js';
import { measuredName, type Operation, type OperationAnswer, type OperationName } from '../../stores/operation.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../../stores/store.js';
import { chargesOf } from '../../stores/store-decision.js';
import { addressOf } from './counter-index.js';
import { type Ahead, AT_HOME, type End, publishEnd, readEnd } from './ended.js';
import type { Exchanges } from './exchanges.js';
import { cutOff } from './home.js';
import { HOLDINGS } from './holdings.js';
import { limitRegionsOf } from './limit-regions.js';
import { worldMessages } from './messages.js';
import type { RegionCounter } from './region-counter.js';

/** How many exchanges a check waits for at most. */
const MOST_EXCHANGES = 8;
/** How long to wait for an exchange of another instance before looking again, in milliseconds. */
const LOOK_AGAIN_MS = 10;

/** A counter whose units are missing, and how many. */
interface Missing {
  readonly entry: CheckEntry;
  readonly counter: RegionCounter;
}

/**
 * Decides limits of scope 'world' by the units that the region holds, together with all other limits of a check. It has them refilled
 * before they are used up. Where they are, a check waits for the home, unless that does not answer.
 */
export class RegionStore extends StoreLayer implements Listener {
  constructor(
    inner: Store,
    private readonly exchanges: Exchanges,
    /** Decides limits whose home does not answer. */
    private readonly alone: LocalDecisions,
    /** On which regions publish that counters ended, at home. */
    private readonly channel: InstanceChannel,
    private readonly timeoutMs: number,
  ) {
    super(inner);
    channel.listen(this);
  }

  /** Never rejects for the home: an app starts without it. */
  override async open(): Promise<void> {
    await Promise.all([super.open(), this.exchanges.home.open()]);
  }

  override async close(): Promise<void> {
    await this.exchanges.close();
    this.channel.close();
    await this.inner.close();
    await this.exchanges.home.store.close();
  }

  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    return limitRegionsOf(limit) === undefined ? this.inner.decideOne?.(limit, identity, cost) : undefined;
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (!check.entries.some(isOfWorld)) this.below.decide(check, answer);
    else if (this.exchanges.home.clock.latest() === 0 || looks(check) || check.upTo === true) {
      answerWith(this.decideWithHome(check), answer);
    } else {
      this.bindTime(check.entries);
      this.below.decide(check, new RegionAnswer(this, check, answer));
    }
  }

  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const { counters: all } = operation;
    const ofWorld = (all as readonly Counter[]).filter(isOfWorld);
    if (ofWorld.length === 0) return super.operate(operation);
    if (measuredName(operation as Operation) === HOLDINGS) {
      return this.exchanges.home.holdings(this.exchanges.atHome(ofWorld[0]!));
    }
    const atHome = AT_HOME[operation.name];
    if (atHome === undefined) {
      this.bindTime(ofWorld);
      const answer = await super.operate(operation);
      // What came back is worth more at home, and what is owed is due there.
      for (const counter of ofWorld) this.exchanges.of(counter).touched();
      return answer;
    }
    const others = (all as readonly Counter[]).filter((counter) => !isOfWorld(counter));
    if (others.length > 0) await super.operate({ ...operation, counters: others });
    return this.operateAtHome(operation, ofWorld, atHome.ahead);
  }

  /** Another region, or instance, ended a counter. */
  onMessage(message?: string): void {
    // What was missed is learnt when the units lapse that are held.
    if (message === undefined) return;
    const ended = readEnd(message);
    // The instance that published it has done so for its region: what the home has granted since would be lost.
    if (ended === undefined || ended.region === this.exchanges.home.region) return;
    void this.endedElsewhere(ended).catch(() => undefined);
  }

  private async endedElsewhere({ ahead, address }: End): Promise<void> {
    const { leftovers } = this.exchanges;
    const counter = leftovers.counterOf(address);
    if (counter === undefined) return;
    if (ahead === 'reset') await this.forget(counter.counter);
    // Where nobody has units, there is nothing to learn.
    else if (leftovers.isOwn(counter) || (await leftovers.has(address))) await counter.learn();
  }

  private async operateAtHome<N extends OperationName>(
    operation: Operation<N>,
    counters: readonly Counter[],
    ahead: Ahead | undefined,
  ): Promise<OperationAnswer<N>> {
    const since = performance.now();
    const { home } = this.exchanges;
    const atHome = counters.map((counter) => this.exchanges.atHome(counter));
    const answer = (
      ahead === 'reset'
        ? await Promise.all(counters.map((counter, index) => this.resetBoth(counter, atHome[index]!)))
        : await operate<N>(home.store, { ...operation, counters: atHome })
    ) as OperationAnswer<N>;
    if (ahead === undefined) return answer;
    await Promise.all(
      counters.map(async (counter) => {
        if (ahead === 'learn') await this.exchanges.of(counter).learn();
        await publishEnd(this.channel, { region: home.region, ahead, address: addressOf(counter) }, since);
      }),
    );
    return answer;
  }

  private resetBoth(counter: Counter, atHome: Counter): Promise<void> {
    const { home } = this.exchanges;
    return this.exchanges.of(counter).whileAtRest(async () => {
      await home.reset(atHome);
      await this.forget(counter);
    });
  }

  /** The region's units are void: the home has forgotten that it granted them. */
  private forget(counter: Counter): Promise<void> {
    return this.inner.reset([counter]);
  }

  private bindTime(counters: readonly Counter[]): void {
    for (const { limit } of counters) {
      const regions = limitRegionsOf(limit);
      if (regions !== undefined) regions.time = this.exchanges.home.clock;
    }
  }

  /** What has to ask the home first: the first check, which does not know its time, looks, and checks that take as much as there is. */
  private async decideWithHome(check: Check, again = true): Promise<StoreDecision[]> {
    const { since = performance.now(), upTo = false } = check;
    const peek = looks(check);
    this.bindTime(check.entries);
    const ofWorld = check.entries.filter(isOfWorld).map((entry) => ({ entry, counter: this.exchanges.of(entry) }));
    try {
      if (this.exchanges.home.isCut) throw cutOff();
      await this.inTime(this.exchanges.ready(), since);
      if (peek) await this.inTime(Promise.all(ofWorld.map(({ counter }) => counter.learn())), since);
      else if (upTo) {
        await this.inTime(Promise.all(ofWorld.map(({ entry, counter }) => counter.exchangeFor(entry.cost, 1))), since);
      }
    } catch (error) {
      return this.decideWithout({ ...check, since }, ofWorld, error);
    }
    const decisions = await this.decideAgain(check, since);
    if (decisions === undefined) return this.decideWithout({ ...check, since }, ofWorld, this.tooLate());
    // What was learnt may have been forgotten meanwhile, by a reset.
    if (peek && again && ofWorld.some(({ entry }) => isUnknown(decisions[check.entries.indexOf(entry)]!))) {
      return this.decideWithHome({ ...check, since }, false);
    }
    const missing = this.read(check, decisions);
    return missing === undefined ? decisions : this.waitFor({ ...check, since }, missing, decisions);
  }

  /** Takes in what the region's server decided; a check that lacks units waits for them. */
  received(check: Check, since: number, decisions: StoreDecision[], answer: CheckAnswer): void {
    const missing = this.read(check, decisions);
    if (missing === undefined) report(answer, decisions);
    else answerWith(this.waitFor({ ...check, since }, missing, decisions), answer);
  }

  /** Reads what was noted with decisions. Returns the counters that may get the units which the check lacks, if that is all it lacks. */
  private read({ entries, peek }: Check, decisions: StoreDecision[]): Missing[] | undefined {
    const missing: Missing[] = [];
    let isFinal = peek === true;
    for (const [index, decision] of decisions.entries()) {
      const entry = entries[index]!;
      const { note } = decision;
      if (note !== undefined) {
        delete decision.note;
        const counter = this.exchanges.of(entry);
        const mayCome = counter.noted(note, decision.allowed);
        if (decision.allowed) continue;
        if (mayCome && entry.cost <= entry.limit.quota) {
          missing.push({ entry, counter });
          continue;
        }
        if (peek !== true) counter.refused();
      }
      if (!decision.allowed && !entry.limit.shadow) isFinal = true;
    }
    if (!isFinal && missing.length > 0) return missing;
    // What the home has left could be had: these limits do not refuse.
    for (const { entry } of missing) {
      const decision = decisions[entries.indexOf(entry)]!;
      if (decision.remaining >= entry.cost) Object.assign(decision, { allowed: true, retryAfterMs: 0 });
    }
    return undefined;
  }

  private async waitFor(check: Check, missing: readonly Missing[], refusal: StoreDecision[]): Promise<StoreDecision[]> {
    for (const { counter } of missing) counter.waiters++;
    try {
      return await this.exchangeFor(check, missing, refusal);
    } finally {
      for (const { counter } of missing) counter.waiters--;
    }
  }

  /** Has the home grant what is missing, and asks again; at last, what the region has says. */
  private async exchangeFor(
    check: Check,
    first: readonly Missing[],
    refusal: StoreDecision[],
  ): Promise<StoreDecision[]> {
    const { since = performance.now() } = check;
    let missing = first;
    let decisions = refusal;
    for (let exchanges = 0; exchanges < MOST_EXCHANGES;) {
      try {
        if (this.exchanges.home.isCut) throw cutOff();
        const asked = missing.map(({ entry: { cost }, counter }) =>
          counter.exchangeFor(cost, check.upTo === true ? 1 : cost),
        );
        const outcomes = await this.inTime(Promise.all(asked), since);
        if (outcomes.includes('waiting')) await this.inTime(pause(LOOK_AGAIN_MS), since);
        else exchanges++;
      } catch (error) {
        // A home that answers has less than is asked for.
        if (exchanges > 0 && !this.exchanges.home.isCut) return decisions;
        return this.decideWithout({ ...check, since }, missing, error);
      }
      const again = await this.decideAgain(check, since);
      // A home that answers has less than is asked for.
      if (again === undefined) return decisions;
      decisions = again;
      const still = this.read(check, decisions);
      if (still === undefined) return decisions;
      missing = still;
    }
    return decisions;
  }

  /**
   * What the region's server decides after a wait for the home; nothing if the time of the check is up before. The server has its own
   * deadline: how long the home took says nothing of it. Units that are taken too late go back.
   */
  private async decideAgain({ since: _, ...check }: Check, since: number): Promise<StoreDecision[] | undefined> {
    const asked = this.askBelow(check);
    const decisions = await Promise.race([asked, endOf(since + this.timeoutMs)]);
    if (decisions === undefined && check.peek !== true) {
      const { entries } = check;
      const isCharged = (late: StoreDecision[]) =>
        entries.every(({ limit }, index) => limit.shadow || late[index]!.allowed);
      asked
        .then((late) => (isCharged(late) ? this.refund(chargesOf(entries, late)) : undefined))
        .catch(() => undefined);
    }
    return decisions;
  }

  private askBelow(check: Check): Promise<StoreDecision[]> {
    this.bindTime(check.entries);
    return decided(this.inner, check);
  }

  /** Decides by what the limits say that lack units of a home which does not answer, and by the store for all others. */
  private async decideWithout(check: Check, missing: readonly Missing[], error: unknown): Promise<StoreDecision[]> {
    if (!(error instanceof RateLimitStoreError)) throw error;
    const { entries, peek = false, refundable, hold, upTo } = check;
    const alone = missing.map(({ entry }) => entry);
    const others = entries.filter((entry) => !alone.includes(entry));
    if (others.length === 0) return this.alone.decide(check, error);
    const ways = { refundable: true, hold: hold ?? false, strict: check.strict ?? false };
    const parts = [
      {
        entries: alone,
        ask: (peeks: boolean, most?: number) =>
          this.alone.decide({ ...takeOf(alone, most), ...ways, peek: peeks }, error),
        giveBack: (charged: readonly StoreDecision[]) => this.inner.refund(chargesOf(alone, charged)),
      },
      {
        entries: others,
        ask: async (peeks: boolean, most?: number) => {
          const asked: Check = {
            ...takeOf(others, most),
            refundable: refundable ?? false,
            hold: hold ?? false,
            peek: peeks,
          };
          const decisions = await this.askBelow({ ...asked, since: performance.now() });
          this.read(asked, decisions);
          return decisions;
        },
      },
    ];
    return allOrNothing(entries, parts, peek, undefined, upTo);
  }

  private async inTime<T>(promise: Promise<T>, since: number): Promise<T> {
    return Promise.race([promise, endOf(since + this.timeoutMs).then(() => Promise.reject(this.tooLate()))]);
  }

  private tooLate(): RateLimitStoreError {
    return new RateLimitStoreError(worldMessages.tooLate(this.timeoutMs));
  }
}

/** Whether it takes nothing: then the home says what is left. */
function looks({ entries, peek }: Check): boolean {
  return peek === true || entries.every(({ cost }) => cost === 0);
}

function isOfWorld({ limit }: Counter): boolean {
  return limitRegionsOf(limit) !== undefined;
}

/** Whether a region says nothing of a counter: it neither has units nor knows what the home has. */
function isUnknown({ remaining, resetAfterMs, retryAfterMs }: StoreDecision): boolean {
  return remaining === 0 && resetAfterMs === 0 && retryAfterMs <= 1;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Resolves at a time of the process's clock, but not before what has arrived by then is read. */
function endOf(time: number): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(() => setImmediate(() => resolve(undefined)), time - performance.now());
  });
}

/** Passes on an answer once the region's notes are read. */
class RegionAnswer implements CheckAnswer {
  /** What the region's server takes is a part of what the check may take. */
  private readonly since: number;

  constructor(
    private readonly store: RegionStore,
    private readonly check: Check,
    private readonly answer: CheckAnswer,
  ) {
    this.since = check.since ?? performance.now();
  }

  decided(decisions: StoreDecision[]): void {
    this.store.received(this.check, this.since, decisions, this.answer);
  }

  failed(error: unknown): void {
    this.answer.failed(error);
  }
}
