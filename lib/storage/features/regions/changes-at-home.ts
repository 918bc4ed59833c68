import type { Counter } from '../../../engine/limits/counter.js';
import type { InstanceChannel } from '../../redis/instance-channel.js';
import type { Operation, OperationAnswer, OperationName } from '../../stores/operation.js';
import { addressOf, readTexts } from './counter-index.js';
import type { Home } from './home.js';
import { counterAtHome } from './limit-regions.js';

/** How regions handle their held units after a counter was changed at home. */
export type Ahead = 'reset' | 'learn';

/** The operations that are done at home, and how regions react to them. */
export const AT_HOME: { readonly [N in OperationName]?: { readonly ahead?: Ahead } } = {
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

/** The held units of the region that makes a change. */
export interface UnitsHere {
  /** Resets a counter in the region, and at home through the function. */
  reset(counter: Counter, atHome: () => Promise<boolean>): Promise<boolean>;
  learn(counter: Counter): Promise<void>;
}

/** The implementation for a program that doesn't belong to a region. */
const NO_UNITS: UnitsHere = { reset: (_, atHome) => atHome(), learn: () => Promise.resolve() };

/** Changes counters at home, and notifies all regions. */
export class ChangesAtHome {
  constructor(
    private readonly home: Home,
    private readonly channel: InstanceChannel,
    private readonly units = NO_UNITS,
  ) {}

  async make<N extends OperationName>(
    operation: Operation<N>,
    counters: readonly Counter[],
    ahead: Ahead | undefined,
  ): Promise<OperationAnswer<N>> {
    const since = performance.now();
    const { home, units } = this;
    const atHome = counters.map(counterAtHome);
    const answer = (
      ahead === 'reset'
        ? (
            await Promise.all(counters.map((counter, index) => units.reset(counter, () => home.reset(atHome[index]!))))
          ).includes(true)
        : await home.layer.operate<N>({ ...operation, counters: atHome })
    ) as OperationAnswer<N>;
    if (ahead === undefined) return answer;
    await Promise.all(
      counters.map(async (counter) => {
        if (ahead === 'learn') await units.learn(counter);
        await this.channel.publish(JSON.stringify([home.region, ahead, addressOf(counter)]), since);
      }),
    );
    return answer;
  }
}
