import type { Counter } from '../../../engine/limits/counter.js';
import type { InstanceChannel, Listener } from '../../redis/instance-channel.js';
import { answerWith, report } from '../../stores/decide.js';
import type { LocalDecisions } from '../../stores/layers/local-decisions.js';
import type { Operation, OperationAnswer, OperationName } from '../../stores/operation.js';
import type { Check, CheckAnswer, Refund, Store, StoreDecision } from '../../stores/store.js';
import { MissingUnits } from './missing-units.js';
import { Exchanges } from './exchanges.js';
import { Home, homeStoreOn } from './home.js';
import { isOfWorld } from './limit-regions.js';
import { randomUUID } from 'node:crypto';
import { regionKeys } from '../../stores/redis/keys.js';
import type { HomePlace, LayerSurroundings } from '../feature.js';
import { CounterIndex } from './counter-index.js';
import { HomeRecord } from './home-record.js';
import type { RegionCounter } from './region-counter.js';
import { type End, readEnd, WorldLayer } from './world-layer.js';

/**
 * Decides limits of scope 'world' with the units that the region holds, together with all other limits of a check. It requests more units
 * before they are used up. If they are used up, a check waits for the home, unless the home doesn't answer.
 */
export class RegionStore extends WorldLayer implements Listener {
  private readonly missing: MissingUnits;

  constructor(
    inner: Store,
    private readonly exchanges: Exchanges,
    /** Decides limits whose home doesn't answer. */
    private readonly alone: LocalDecisions,
    channel: InstanceChannel,
    timeoutMs: number,
  ) {
    super(inner, exchanges.home, channel);
    const region = {
      decided: (check: Check) => {
        exchanges.bindTime(check.entries);
        return this.inner.decided(check);
      },
      refund: (refunds: readonly Refund[]) => this.refund(refunds),
    };
    this.missing = new MissingUnits(region, exchanges, alone, timeoutMs);
    channel.listen(this);
  }

  override async close(): Promise<void> {
    await this.exchanges.close();
    await super.close();
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (!check.entries.some(isOfWorld)) this.inner.decide(check, answer);
    else if (this.home.clock.latest() === 0 || looks(check) || check.upTo === true) {
      answerWith(this.decideWithHome(check), answer);
    } else {
      this.exchanges.bindTime(check.entries);
      this.inner.decide(check, new RegionAnswer(this, check, answer));
    }
  }

  protected override async operateInRegion<N extends OperationName>(
    operation: Operation<N>,
    ofWorld: readonly Counter[],
  ): Promise<OperationAnswer<N>> {
    this.exchanges.bindTime(ofWorld);
    const answer = await this.inner.operate(operation);
    // Returned units are more useful at home, and owed units have to be charged there.
    for (const counter of ofWorld) this.exchanges.of(counter).touched();
    return answer;
  }

  /** Another region or instance has ended a counter. */
  onMessage(message?: string): void {
    // Changes that were missed become known when the held units lapse.
    if (message === undefined) return;
    const ended = readEnd(message);
    // The instance that published it has handled it for its region. Only a reset concerns the exchanges of each instance.
    if (ended === undefined || (ended.region === this.home.region && ended.ahead !== 'reset')) return;
    void this.endedElsewhere(ended).catch(() => undefined);
  }

  private async endedElsewhere({ ahead, address }: End): Promise<void> {
    const { leftovers } = this.exchanges;
    const counter = leftovers.counterOf(address);
    if (counter === undefined) return;
    if (ahead === 'reset') await this.forget(counter);
    // Without units there is nothing to update.
    else if (leftovers.isOwn(counter) || (await leftovers.index.has(address))) await counter.learn();
  }

  protected override async resetBoth(counter: Counter, atHome: () => Promise<boolean>): Promise<boolean> {
    const wasThere = await atHome();
    await this.forget(this.exchanges.of(counter));
    return wasThere;
  }

  protected override learnFromHome(counter: Counter): Promise<void> {
    return this.exchanges.of(counter).learn();
  }

  /** Ends the units of the region, and what this process counted alone. */
  private async forget(counter: RegionCounter): Promise<void> {
    await Promise.all([counter.forget(), this.alone.store.reset([this.alone.partOf(counter.counter)])]);
  }

  /** Decides checks that have to call the home first: the first check, reads, and checks that take as many units as fit. */
  private async decideWithHome(check: Check, again = true): Promise<StoreDecision[]> {
    const { since = performance.now(), upTo = false } = check;
    const peek = looks(check);
    this.exchanges.bindTime(check.entries);
    const ofWorld = check.entries.filter(isOfWorld).map((entry) => ({ entry, counter: this.exchanges.of(entry) }));
    try {
      if (this.home.isCut) throw this.home.cutOff();
      await this.missing.inTime(this.exchanges.ready(), since);
      if (peek) await this.missing.inTime(Promise.all(ofWorld.map(({ counter }) => counter.learn())), since);
      else if (upTo) {
        await this.missing.inTime(
          Promise.all(ofWorld.map(({ entry, counter }) => counter.exchangeFor(entry.cost, 1))),
          since,
        );
      }
    } catch (error) {
      return this.missing.decideWithout({ ...check, since }, ofWorld, error);
    }
    const decisions = await this.missing.decideAgain(check, since);
    if (decisions === undefined)
      return this.missing.decideWithout({ ...check, since }, ofWorld, this.missing.tooLate());
    // A reset in the meantime may have cleared the state.
    if (peek && again && ofWorld.some(({ entry }) => isUnknown(decisions[check.entries.indexOf(entry)]!))) {
      return this.decideWithHome({ ...check, since }, false);
    }
    const missing = this.missing.read(check, decisions);
    return missing === undefined ? decisions : this.missing.waitFor({ ...check, since }, missing, decisions);
  }

  /** Handles the decision of the region's server. A check that lacks units waits for them. */
  received(check: Check, since: number, decisions: StoreDecision[], answer: CheckAnswer): void {
    const missing = this.missing.read(check, decisions);
    if (missing === undefined) report(answer, decisions);
    else answerWith(this.missing.waitFor({ ...check, since }, missing, decisions), answer);
  }
}

/** Returns true if a check takes nothing. The home then reports the remaining units. */
function looks({ entries, peek }: Check): boolean {
  return peek === true || entries.every(({ cost }) => cost === 0);
}

/** Returns true if a region knows nothing about a counter: it has no units, and no state of the home. */
function isUnknown({ remaining, resetAfterMs, retryAfterMs }: StoreDecision): boolean {
  return remaining === 0 && resetAfterMs === 0 && retryAfterMs <= 1;
}

/** Passes an answer on after reading the notes of the region's script. */
class RegionAnswer implements CheckAnswer {
  /** When the check began: the time of the region's server is a part of the time of the check. */
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

/** How long the home may take to answer, in milliseconds. A check doesn't wait longer for it than for the region's own server. */
const HOME_TIMEOUT_MS = 1000;

/** The layer of an app that has a home for its regions. */
export function regionStore(inner: Store, surroundings: LayerSurroundings, place: HomePlace): RegionStore {
  const { store, connection, alone, prefix, timeoutMs, findLimit } = surroundings;
  const { region, connection: toHome, ownsClient, report } = place;
  const keys = regionKeys(prefix);
  const atHome = homeStoreOn({ connection: toHome, ownsClient, prefix, timeoutMs: HOME_TIMEOUT_MS });
  const record = new HomeRecord(connection, keys.home(region), timeoutMs);
  const home = new Home(atHome.store, keys.regions, region, record, timeoutMs, report);
  const index = new CounterIndex(connection, keys.held(region), randomUUID(), timeoutMs);
  const lastCall = async () => (await record.read()).ageMs;
  const exchanges = new Exchanges(store, home, lastCall, index, findLimit);
  return new RegionStore(inner, exchanges, alone, atHome.channel, timeoutMs);
}
