import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { InstanceChannel } from '../../redis/instance-channel.js';
import { StoreLayer } from '../../stores/layers/store-layer.js';
import { measuredName, type Operation, type OperationAnswer, type OperationName } from '../../stores/operation.js';
import type { Store, StoreDecision } from '../../stores/store.js';
import { addressOf, readTexts } from './counter-index.js';
import type { Home } from './home.js';
import { counterAtHome, HOLDINGS, isOfWorld, limitRegionsOf } from './limit-regions.js';

/** How regions handle their held units after a counter was changed at home. */
type Ahead = 'reset' | 'learn';

/** The operations that are done at home, and how regions react to them. */
const AT_HOME: { readonly [N in OperationName]?: { readonly ahead?: Ahead } } = {
  block: { ahead: 'learn' },
  reset: { ahead: 'reset' },
  history: {},
  blockedFor: {},
};

/** The message that a counter was changed at home. */
export interface End {
  /** The region that made the change, which needs no message; empty if no region did. */
  readonly region: string;
  readonly ahead: string;
  /** The counter: see `addressOf`. */
  readonly address: string;
}

/** Reads such a message; `undefined` if it has another form. */
export function readEnd(message: string): End | undefined {
  const [region, ahead, address] = readTexts(message, 3) ?? [];
  return address === undefined ? undefined : { region: region!, ahead: ahead!, address };
}

/** A layer that reads and changes counters of scope 'world' at their home, and notifies all regions of changes. */
export abstract class WorldLayer extends StoreLayer {
  constructor(
    inner: Store,
    protected readonly home: Home,
    /** The channel on which regions publish that counters ended at home. */
    protected readonly channel: InstanceChannel,
  ) {
    super(inner);
  }

  /** Never rejects because of the home: an app starts without it. */
  override async open(): Promise<void> {
    await Promise.all([super.open(), this.home.open()]);
  }

  override async close(): Promise<void> {
    this.channel.close();
    await super.close();
    await this.home.store.close();
  }

  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    return limitRegionsOf(limit) === undefined ? this.inner.decideOne(limit, identity, cost) : undefined;
  }

  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const all = operation.counters as readonly Counter[];
    const ofWorld = all.filter(isOfWorld);
    if (ofWorld.length === 0) return super.operate(operation);
    if (measuredName(operation as Operation) === HOLDINGS) return this.home.holdings(counterAtHome(ofWorld[0]!));
    const atHome = AT_HOME[operation.name];
    if (atHome === undefined) return this.operateInRegion(operation, ofWorld);
    const others = all.filter((counter) => !isOfWorld(counter));
    if (others.length > 0) await super.operate({ ...operation, counters: others });
    return this.operateAtHome(operation, ofWorld, atHome.ahead);
  }

  /** Runs an operation that isn't done at home, such as a refund of units that the region has charged. */
  protected abstract operateInRegion<N extends OperationName>(
    operation: Operation<N>,
    ofWorld: readonly Counter[],
  ): Promise<OperationAnswer<N>>;

  /** Resets a counter in the region, if the program belongs to one, and at home through the function. */
  protected resetBoth(_counter: Counter, atHome: () => Promise<boolean>): Promise<boolean> {
    return atHome();
  }

  /** Gets the state at home of a counter in the region, if the program belongs to one. */
  protected async learnFromHome(_counter: Counter): Promise<void> {}

  private async operateAtHome<N extends OperationName>(
    operation: Operation<N>,
    counters: readonly Counter[],
    ahead: Ahead | undefined,
  ): Promise<OperationAnswer<N>> {
    const since = performance.now();
    const answer = (
      ahead === 'reset'
        ? await this.resetAll(counters)
        : await this.home.layer.operate<N>({ ...operation, counters: counters.map(counterAtHome) })
    ) as OperationAnswer<N>;
    if (ahead === undefined) return answer;
    await Promise.all(
      counters.map(async (counter) => {
        if (ahead === 'learn') await this.learnFromHome(counter);
        await this.channel.publish(JSON.stringify([this.home.region, ahead, addressOf(counter)]), since);
      }),
    );
    return answer;
  }

  private async resetAll(counters: readonly Counter[]): Promise<boolean> {
    const reset = (counter: Counter) => this.resetBoth(counter, () => this.home.reset(counterAtHome(counter)));
    return (await Promise.all(counters.map(reset))).includes(true);
  }
}
