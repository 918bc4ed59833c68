import { setImmediate as turn } from 'node:timers/promises';
import { jest } from '@jest/globals';
import type { ResponseHeaders, UpstreamResponse } from '../../../lib/integrations/outbound/index.js';
import type { Store } from '../../../lib/index.js';
import type { Check } from '../../../lib/testing/store/index.js';
import { randomNumbers } from '../../../lib/cli/simulate/random-numbers.js';
import { WaitQueues } from '../../../lib/app/waiting/wait-queues.js';
import { Flights } from '../../../lib/integrations/outbound/learning/flights.js';
import type { LearnedRules, OutboundRule } from '../../../lib/integrations/outbound/learning/learned-rules.js';
import { OutboundCaller } from '../../../lib/integrations/outbound/outbound-call.js';
import { readOptions } from '../../../lib/integrations/outbound/outbound-options.js';
import { RefusalCacheStore } from '../../../lib/storage/stores/layers/refusal-cache.store.js';
import { StoreLayer } from '../../../lib/storage/stores/layers/store-layer.js';
import type { Operation, OperationAnswer, OperationName } from '../../../lib/storage/stores/operation.js';
import type { CheckAnswer } from '../../../lib/storage/stores/store.js';
import { LocalChannel } from './local-channel.js';

/** A limit by which simulated processes call an upstream. */
export type SimulatedRule = OutboundRule;

/** What an upstream says besides its status. */
export type Tells = 'seconds' | 'epoch' | 'retry-after';

/** An upstream of a fixed window, and processes that always have calls for it. Times are milliseconds. */
export interface SimulatedUpstream {
  readonly quota: number;
  readonly windowMs: number;
  /** When its windows turn. */
  readonly phaseMs: number;
  readonly tells?: Tells;
  /** A call takes half to all of this, there and back. */
  readonly latencyMs: number;
  /** The store takes so long to answer. */
  readonly storeMs: number;
  /** The share of each window that another consumer takes, if it gets it. */
  readonly otherShare: number;
  readonly processes: number;
  /** Calls that each process has at once. */
  readonly waiting: number;
  readonly windows: number;
}

/** What an upstream counted in one of its windows, and what was left to us by others. */
export interface Seen {
  allowed: number;
  refused: number;
  possible: number;
}

/** Asks a store that is so far away, and counts for all: what it refuses may be remembered. */
class FarStore extends StoreLayer {
  constructor(
    store: Store,
    private readonly ms: number,
    private readonly traffic: Traffic,
  ) {
    super(store);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    void this.away(
      () =>
        new Promise<() => void>((resolve) =>
          this.inner.decide(check, {
            decided: (decisions) =>
              resolve(() => answer.decided(decisions.map((each) => ({ ...each, source: 'redis' })))),
            failed: (error) => resolve(() => answer.failed(error)),
          }),
        ),
    ).then((tell) => tell());
  }

  override operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    return operation.name === 'learn' ? this.away(() => super.operate(operation)) : super.operate(operation);
  }

  private async away<T>(ask: () => Promise<T>): Promise<T> {
    await this.traffic.sleep(this.ms / 2);
    this.traffic.pending++;
    const answer = await ask().finally(() => this.traffic.pending--);
    await this.traffic.sleep(this.ms / 2);
    return answer;
  }
}

/** What happens later, and what stores have been asked. */
class Traffic {
  pending = 0;
  private readonly later = new Map<number, (() => void)[]>();

  /** To the millisecond. */
  sleep(ms: number): Promise<void> {
    const at = Date.now() + Math.max(1, Math.round(ms));
    return new Promise((resolve) => {
      const known = this.later.get(at);
      if (known === undefined) this.later.set(at, [resolve]);
      else known.push(resolve);
    });
  }

  async pass(): Promise<void> {
    jest.advanceTimersByTime(1);
    const now = Date.now();
    for (const resolve of this.later.get(now) ?? []) resolve();
    this.later.delete(now);
    do await turn();
    while (this.pending > 0);
  }
}

/** Answers as an API does that counts in windows. */
class Windows {
  readonly seen: Seen[] = [];
  private used = 0;
  private other = 0;
  private end: number;
  private current: Seen = { allowed: 0, refused: 0, possible: 0 };

  constructor(
    private readonly given: SimulatedUpstream,
    private readonly random: () => number,
  ) {
    const { windowMs, phaseMs } = given;
    this.end = windowMs * Math.ceil(Date.now() / windowMs) + phaseMs;
    setInterval(() => this.takeOther(), 250);
  }

  answer(): UpstreamResponse {
    const now = this.turn();
    const { quota, tells = 'seconds' } = this.given;
    const isAllowed = this.used < quota;
    if (isAllowed) this.used++;
    this.current[isAllowed ? 'allowed' : 'refused']++;
    const left = quota - this.used;
    const seconds = Math.ceil((this.end - now) / 1000);
    const headers: Record<string, string> = {
      ...(tells === 'seconds' && {
        ratelimit: `"default";r=${left};t=${seconds}`,
        'ratelimit-policy': `"default";q=${quota};w=${this.given.windowMs / 1000}`,
      }),
      ...(tells === 'epoch' && {
        'x-ratelimit-limit': String(quota),
        'x-ratelimit-remaining': String(left),
        'x-ratelimit-reset': String(Math.ceil(this.end / 1000)),
      }),
      ...(!isAllowed && { 'retry-after': String(seconds) }),
    };
    const found: ResponseHeaders = { get: (name) => headers[name] ?? null };
    return { status: isAllowed ? 200 : 429, headers: found, receivedAt: now };
  }

  private turn(): number {
    const now = Date.now();
    const { windowMs, quota } = this.given;
    while (now >= this.end) {
      this.seen.push({ ...this.current, possible: quota - this.other });
      this.current = { allowed: 0, refused: 0, possible: 0 };
      this.used = this.other = 0;
      this.end += windowMs;
    }
    return now;
  }

  private takeOther(): void {
    this.turn();
    const { quota, otherShare, windowMs } = this.given;
    const burst = Math.round((2 * this.random() * quota * otherShare) / (windowMs / 250));
    for (let call = 0; call < burst && this.used < quota; call++) {
      this.used++;
      this.other++;
    }
  }
}

const NONE_LEARNED = { of: () => undefined } as unknown as LearnedRules;

/** Has calls made for a while, at all upstreams at the same time, and says what each saw in each of its windows. */
export async function simulateOutbound(
  upstreams: readonly SimulatedUpstream[],
  store: Store,
  rules: readonly OutboundRule[],
): Promise<Seen[][]> {
  const traffic = new Traffic();
  const state = { isOver: false };
  const until = Date.now() + Math.max(...upstreams.map(({ windows, windowMs }) => (windows + 1) * windowMs));
  const errors: unknown[] = [];
  const windows: Windows[] = [];
  for (const [index, given] of upstreams.entries()) {
    const random = randomNumbers(1);
    const api = new Windows(given, random);
    const rule = rules[index]!;
    for (let number = 0; number < given.processes; number++) {
      const channel = new LocalChannel();
      const far = new RefusalCacheStore(new FarStore(store, given.storeMs, traffic), channel.asChannel);
      await far.open();
      channel.connect();
      const waits = new WaitQueues(far);
      const flights = new Flights(far, NONE_LEARNED, (error) => errors.push(error));
      const settings = readOptions<object, object>({ learn: true, retry: { attempts: 20 } }, 'test');
      const caller = new OutboundCaller([rule], settings, { store: far, waits }, flights);
      const callOnce = async () => {
        const call = await caller.call(() => ({}), undefined);
        await call.enter();
        for (;;) {
          await traffic.sleep(given.latencyMs * (0.5 + random() / 2));
          const response = api.answer();
          await traffic.sleep((given.latencyMs * random()) / 2);
          const report = call.answered({ ...response, receivedAt: Date.now() });
          const waitMs = call.waitMs({ method: 'GET', hasKey: false, canRepeat: true }, report, response.status);
          if (waitMs === undefined || (await call.reenter(waitMs)) === undefined) return;
        }
      };
      const lane = async () => {
        await traffic.sleep(20 * random());
        while (!state.isOver) await callOnce();
      };
      for (let each = 0; each < given.waiting; each++) lane().catch((error: unknown) => errors.push(error));
    }
    windows.push(api);
  }
  // By how much retries wait longer is drawn from the same numbers in each run, as all else is.
  const jitter = jest.spyOn(Math, 'random').mockImplementation(randomNumbers(1));
  try {
    while (Date.now() < until && errors.length === 0) await traffic.pass();
  } finally {
    jitter.mockRestore();
  }
  state.isOver = true;
  if (errors.length > 0) throw errors[0];
  return windows.map(({ seen }) => seen);
}
