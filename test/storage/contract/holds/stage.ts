import type { AlgorithmOptions, Store } from '../../../../lib/index.js';
import type { CompiledLimit, Refund } from '../../../../lib/testing/store/index.js';
import { ask, chargeOf, type ManualClock } from '../../../support/limits/stores.js';
import { storeStage } from '../store-stage.js';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const DAY = 24 * 60 * MINUTE;
export const START = Date.parse('2026-09-21T10:00:00Z');
export const identity = 'ip:203.0.113.7';

export type OnLapse = 'charge' | 'release';

/** Ten units, in windows of a minute or a month. */
export const ten: Record<string, (onLapse: OnLapse) => AlgorithmOptions> = {
  'fixed-window': (onLapse) => ({ algo: 'fixed-window', rate: 10, interval: '1m', hold: '5s', onLapse }),
  'calendar-window': (onLapse) => ({ algo: 'calendar-window', rate: 10, period: 'minute', hold: '5s', onLapse }),
  'sliding-window': (onLapse) => ({ algo: 'sliding-window', rate: 10, interval: '1m', hold: '5s', onLapse }),
  'sliding-log': (onLapse) => ({ algo: 'sliding-log', rate: 10, interval: '1m', hold: '5s', onLapse }),
  budget: (onLapse) => ({ algo: 'budget', limit: 10, period: 'month', hold: '5s', onLapse }),
};

/** A store, and what is done to it with units that are held. */
export type HoldsStage = ReturnType<typeof holdsStage>;

/** Sets the stage for each test. `make` makes a store that asks the clock for the time. */
export function holdsStage(make: (clock: ManualClock) => Store) {
  const stage = storeStage(make, START);

  async function reserveAll(limits: readonly [limit: CompiledLimit, units: number][]) {
    const entries = limits.map(([limit, cost]) => ({ limit, identity, cost }));
    const [decisions] = await stage.store.check([{ entries, hold: true, refundable: true }]);
    const held = entries.map(({ limit, cost: units }, index) =>
      chargeOf({ limit, identity, cost: units }, decisions![index]!),
    );
    return { decisions: decisions!, held };
  }

  async function reserve(limit: CompiledLimit, units: number): Promise<Refund & { allowed: boolean }> {
    const { decisions, held } = await reserveAll([[limit, units]]);
    return { ...held[0]!, allowed: decisions[0]!.allowed };
  }

  const settle = (held: Refund, actual: number) => stage.store.refund([{ ...held, actual }]);
  const left = async (limit: CompiledLimit) => (await ask(stage.store, limit, { peek: true })).remaining;

  return Object.assign(stage, { reserveAll, reserve, settle, left });
}
