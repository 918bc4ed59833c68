import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import { CompiledLimit, type Refund } from '../../../lib/testing/store/index.js';
import { unitsOf } from '../../../lib/storage/features/usage/stores.js';
import { expectEqual } from '../../support/limits/property-runs.js';
import { chargeOf, featuresOfOptions, featureTerms, freshPrefix, ManualClock } from '../../support/limits/stores.js';
import { daysFrom, PlanModel, type Settings } from './plan-model.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const HOUR_MS = 3_600_000;
const identity = 'user:42';

/** What a limit may be besides its rate, and what becomes of lapsed holds. */
export interface Kind {
  readonly algo: 'calendar-window' | 'budget' | 'fixed-window';
  readonly rollover?: 0.5 | 1;
  readonly credits?: true;
  readonly holdHours: number;
  /** The hour at which windows begin, as a function says it. */
  readonly anchorHour?: number;
  readonly retains: boolean;
}

/** What is corrected by hand. */
type Correction =
  | { readonly do: 'refund' | 'penalize' | 'withdraw'; readonly units: number }
  | { readonly do: 'credit'; readonly units: number; readonly id?: string }
  | { readonly do: 'reset' };

/** What is done, or looked at. */
export type Step =
  | Correction
  | { readonly do: 'wait'; readonly minutes: number }
  | { readonly do: 'consume' | 'reserve' | 'look'; readonly units: number }
  | { readonly do: 'reserve one by one'; readonly times: number }
  | { readonly do: 'settle' | 'give back'; readonly which: number; readonly units: number }
  | { readonly do: 'read' }
  | { readonly do: 'change'; readonly settings: Settings };

/** A store in process, and one on Redis if there is a connection, that do as the model does. */
export class PlanStage {
  readonly clock = new ManualClock();
  private readonly stores: readonly Store[];
  private readonly model: PlanModel;
  private readonly limits = new Map<string, CompiledLimit>();
  /** What each store would be told to give back of a charge; nothing if it was. */
  private charges: (readonly Refund[] | undefined)[] = [];
  private settings: Settings;

  constructor(
    private readonly kind: Kind,
    settings: Settings,
    redis?: Redis,
  ) {
    this.clock.micros = Date.UTC(2026, 8, 21, 3) * 1000;
    const { clock } = this;
    const remote = redis && new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    this.stores = [new MemoryStore({ clock: clock.now }), ...(remote === undefined ? [] : [remote])];
    const { algo, rollover = 0, credits = false, holdHours, anchorHour = 0, retains } = kind;
    const terms = {
      interval: 12 * HOUR_MS * 1000,
      rollover,
      credits,
      hold: holdHours * HOUR_MS * 1000,
      retain: retains ? 7 * 24 * HOUR_MS * 1000 : 0,
      ...(algo !== 'fixed-window' && { windowAt: daysFrom(anchorHour) }),
    };
    this.settings = settings;
    this.model = new PlanModel(terms, settings);
    this.model.pass(clock.now());
  }

  async close(): Promise<void> {
    await this.stores[0]!.close();
  }

  /** The limit as code asks it. */
  private limit(): CompiledLimit {
    const { rate, releases } = this.settings;
    const key = `${rate} ${releases}`;
    let limit = this.limits.get(key);
    if (limit === undefined) this.limits.set(key, (limit = this.made(rate, releases)));
    return limit;
  }

  private asked(): CompiledLimit {
    const { anchorHour } = this.kind;
    return anchorHour === undefined ? this.limit() : this.limit().meet({ anchor: Date.UTC(2026, 0, 5, anchorHour) });
  }

  private made(rate: number, releases: boolean): CompiledLimit {
    const { algo, rollover, credits, holdHours, anchorHour, retains } = this.kind;
    const window =
      algo === 'fixed-window'
        ? { interval: '12h' }
        : {
            period: 'day',
            rollover,
            credits,
            ...(retains && { retain: '7d' }),
            ...(anchorHour !== undefined && { anchor: () => null }),
          };
    const options = {
      algo,
      ...(algo === 'budget' ? { limit: rate } : { rate }),
      ...window,
      hold: `${holdHours}h`,
      onLapse: releases ? 'release' : 'charge',
    };
    return new CompiledLimit(options as unknown as AlgorithmOptions, {
      location: 'test',
      featuresOfOptions,
      name: 'plan',
      features: featureTerms({ usage: '400d' }, 'test'),
    });
  }

  async take(step: Step): Promise<void> {
    const { model } = this;
    switch (step.do) {
      case 'wait':
        this.wait(step.minutes * 60_000);
        break;
      case 'change':
        this.settings = model.settings = step.settings;
        break;
      case 'consume':
      case 'reserve':
        await this.charge(step.units, step.do === 'reserve', 1);
        break;
      case 'reserve one by one':
        await this.charge(1, true, step.times);
        break;
      case 'settle':
      case 'give back':
        await this.giveBack(step.which, step.units, step.do === 'settle');
        break;
      case 'read':
        await this.compareRecords();
        break;
      case 'look':
        await this.compare(step.units);
        return;
      default:
        await this.correct(step);
    }
    model.forgetEmpty();
    await this.compare(1);
  }

  private wait(ms: number): void {
    this.clock.advanceMs(ms);
    this.model.pass(this.clock.now());
  }

  private async correct(step: Correction): Promise<void> {
    const { model, stores, kind } = this;
    const counter = { limit: this.limit(), identity };
    switch (step.do) {
      case 'refund':
        model.refund(step.units);
        await this.each((store) => store.refund([{ ...counter, units: step.units }]));
        break;
      case 'penalize': {
        // Beyond twice the quota nothing more is charged, and without an anchor the calendar's window would begin.
        const { remaining } = model.look(1);
        if (step.units > remaining || (kind.anchorHour !== undefined && model.running === undefined)) break;
        model.penalize(step.units);
        await this.each((store) => store.penalize({ ...counter, units: step.units }));
        break;
      }
      case 'reset':
        model.reset();
        this.charges = [];
        await this.each((store) => store.reset([counter]));
        break;
      default: {
        if (kind.credits !== true) break;
        const id = step.do === 'credit' ? step.id : undefined;
        const units = step.do === 'credit' ? step.units : -step.units;
        const left = await this.each((store) => store.credit!({ ...counter, units, id }));
        const expected = model.credit(units, id);
        expectEqual(
          left,
          stores.map(() => expected),
        );
      }
    }
  }

  private async charge(cost: number, hold: boolean, times: number): Promise<void> {
    // No window opens at the moment of a charge of the one before.
    this.wait(1);
    const limit = this.asked();
    const check = { entries: [{ limit, identity, cost }], refundable: true, hold };
    const all = await this.each(async (store) =>
      (await store.check(Array.from({ length: times }, () => check))).map(([decision]) => decision!),
    );
    for (let i = 0; i < times; i++) {
      const number = this.model.charge(cost, hold);
      const decisions = all.map((each) => each[i]!);
      expectEqual(
        decisions.map(({ allowed }) => allowed),
        this.stores.map(() => number !== undefined),
      );
      if (number === undefined) continue;
      this.charges[number] = decisions.map((decision) => chargeOf({ limit: this.limit(), identity, cost }, decision));
    }
  }

  private async giveBack(which: number, amount: number, settles: boolean): Promise<void> {
    const { model, charges } = this;
    if (model.size === 0) return;
    const number = model.size - 1 - (which % model.size);
    const { units: most, isHeld, until } = model.chargeAt(number);
    const refunds = charges[number];
    // Where nothing counts, nothing says in which window it is settled.
    if (this.kind.anchorHour !== undefined && (model.running?.count ?? 0) === 0) return;
    // Units that are held come back only when they are settled. Later they are no longer known.
    if (refunds === undefined || isHeld !== settles || this.clock.now() >= until) return;
    if (settles) {
      model.settle(number, amount);
      await this.each((store, index) => store.refund([{ ...refunds[index]!, limit: this.limit(), actual: amount }]));
      return;
    }
    const units = Math.min(most, amount);
    charges[number] = undefined;
    model.giveBack(number, units);
    await this.each((store, index) => store.refund([{ ...refunds[index]!, limit: this.limit(), units }]));
  }

  /** Looks at what would be decided, which writes nothing. */
  private async compare(cost: number): Promise<void> {
    const { credits: hasCredits } = this.kind;
    // What credits a window leaves depends on the rate under which it is charged last.
    const { knowsRate } = this.model;
    const entries = [{ limit: this.asked(), identity, cost }];
    const told = await this.each(async (store) => {
      const [[decision]] = (await store.check([{ entries, peek: true }])) as [
        [Awaited<ReturnType<Store['check']>>[0][0]],
      ];
      const { allowed, remaining, quota, credits, retryAfterMs } = decision;
      return { allowed, remaining, quota, ...(hasCredits && { credits }), ...(knowsRate && { wait: retryAfterMs }) };
    });
    const { credits, wait, ...expected } = this.model.look(cost);
    const all = { ...expected, ...(hasCredits && { credits }), ...(knowsRate && { wait: Math.ceil(wait / 1000) }) };
    expectEqual(
      told,
      this.stores.map(() => all),
    );
  }

  /** What is recorded. */
  async compareRecords(): Promise<void> {
    const { model, kind } = this;
    const counter = { limit: this.limit(), identity };
    if (kind.retains) {
      const windows = await this.each(async (store) => {
        const finished = (await store.history(counter)).filter(({ count }) => count > 0);
        return finished.map(({ start, count }) => ({ start, count }));
      });
      expectEqual(
        windows,
        windows.map(() => model.history()),
      );
    }
    const usage = await this.each((store) => unitsOf(store, counter, { from: -Infinity, to: Infinity }));
    expectEqual(
      usage,
      usage.map(() => model.usage()),
    );
  }

  private each<T>(ask: (store: Store, index: number) => Promise<T>): Promise<T[]> {
    return Promise.all(this.stores.map(ask));
  }
}
