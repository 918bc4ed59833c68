import { algorithms } from '../../engine/algorithms/index.js';
import { type Duration, MAX_INTERVAL_MS } from '../../engine/options/values.js';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { assertKey, assertSignal, toMs } from '../../engine/limits/arguments.js';
import { type Asked, askedOf, type CallOptions } from '../../engine/limits/consume-options.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { callEntries, callEntry } from '../rules/resolve/call-entries.js';
import { heldOf, openDecision } from '../../storage/stores/store-decision.js';
import type { StoreDecision } from '../../storage/stores/store.js';
import { type CalledLimit, isNested, unsupportedCall } from './called-limit.js';
import { levelDecision, ownDecision } from './caller-answer.js';
import { Lease, type LeasedDecision } from './lease.js';

/** The units that a call waits for, and the end of the wait. */
export interface AcquireOptions extends CallOptions {
  /**
   * The maximum wait: milliseconds or a duration such as `'5s'`, at most 1 year.
   * @default no timeout
   */
  timeout?: Duration | undefined;
  /** Ends the wait when the signal aborts. */
  signal?: AbortSignal | undefined;
}

/** The options of `acquire` in addition to those of every call that takes units. */
const ACQUIRE_OPTIONS = ['timeout', 'signal'] as const satisfies readonly (keyof AcquireOptions)[];

/** Waits for units of a limit and all of its ancestors, and takes them. */
export async function acquire(
  limit: CalledLimit,
  key: string,
  options: AcquireOptions | undefined,
): Promise<LeasedDecision> {
  const asked = askedOf(options, limit.rule, ACQUIRE_OPTIONS);
  if (isNested(limit, asked.within)) return acquireLevels(limit, key, asked, options);
  assertKey(key);
  const entry = callEntry(limit.rule, key, asked.cost, asked);
  const answer = await wait(limit, entry, asked, options);
  return ownDecision([withoutDelay(answer)], [entry], limit.store, limit.queues);
}

/** Holds units of a limit while `work` runs. */
export async function hold<T>(
  limit: CalledLimit,
  key: string,
  work: (lease: Lease) => T | Promise<T>,
  options: AcquireOptions,
): Promise<T> {
  const asked = askedOf(options, limit.rule, ACQUIRE_OPTIONS);
  const hasLevels = isNested(limit, asked.within);
  const [entry] = callEntries(limit.rule, key, asked);
  const { algorithm } = entry.limit;
  if (typeof work !== 'function') throw new RateLimitArgumentError(messages.wrongWork(work));
  if (algorithm.leases === undefined) {
    throw unsupportedCall(messages.notHeld(limit.name, algorithm.name, algorithms.withAny('leases')));
  }
  const whole = { timeout: 0, ...options };
  const lease = hasLevels
    ? ((await acquireLevels(limit, key, asked, whole)).lease ?? new Lease(undefined, limit.store, limit.queues))
    : new Lease(heldOf(entry, await wait(limit, entry, asked, whole)), limit.store, limit.queues);
  lease.keepAlive();
  try {
    return await work(lease);
  } finally {
    await lease.release();
  }
}

/** Waits for units of one counter. A shadow limit does not wait, but decides immediately if the units would come in time. */
async function wait(
  { rule, store, queues }: CalledLimit,
  entry: CheckEntry,
  call: Asked,
  { timeout, signal }: AcquireOptions = {},
): Promise<StoreDecision> {
  const timeoutMs = timeout === undefined ? Infinity : toMs('timeout', timeout);
  assertSignal(signal);
  const { limit, identity, cost, priority } = entry;
  let whole = rule.limitFor(identity);
  let asked = [entry];
  if (limit.shadow) {
    signal?.throwIfAborted();
    if (limit.off) return openDecision(limit);
    return store.reserve({ ...entry, maxWaitMs: Math.min(timeoutMs, MAX_INTERVAL_MS) });
  }
  if (cost === 0 && !limit.off) {
    // It takes nothing from waiting calls, so it does not queue behind them.
    signal?.throwIfAborted();
    const answer = await store.reserve({ ...entry, maxWaitMs: 0 });
    if (answer.allowed) return answer;
  }
  // The version is determined once, because a function of the app may return something else later, or fail.
  const { metBy } = limit;
  const entries = (): readonly CheckEntry[] => {
    const current = rule.limitFor(identity);
    if (current !== whole) {
      whole = current;
      asked = [{ limit: current.meet({ ...call, ...metBy, priority }), identity, cost, priority }];
    }
    return asked;
  };
  const { decisions } = await queues.wait({ rules: [rule], entries, mayReserve: true }, { timeoutMs, signal });
  return decisions[0]!;
}

/** Waits for units of all levels. Shadow limits do not wait. */
async function acquireLevels(
  { rule, store, queues }: CalledLimit,
  key: string,
  asked: Asked,
  { timeout, signal }: AcquireOptions = {},
): Promise<LeasedDecision> {
  const timeoutMs = timeout === undefined ? Infinity : toMs('timeout', timeout);
  assertSignal(signal);
  const entriesNow = () => callEntries(rule, key, asked);
  const rules = [rule, ...rule.ancestors];
  const { entries, decisions } = await queues.wait({ rules, entries: entriesNow }, { timeoutMs, signal });
  return levelDecision(decisions.map(withoutDelay), entries, store, queues);
}

/** The decision once its delay has passed. */
function withoutDelay(answer: StoreDecision): StoreDecision {
  return answer.delayMs === 0 ? answer : { ...answer, delayMs: 0 };
}
