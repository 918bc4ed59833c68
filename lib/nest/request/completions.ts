import { Inject, Injectable } from '@nestjs/common';
import type { Outcome } from '../../app/config/common-limit-options.js';
import { RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { Attempts, logger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { Lease } from '../../app/limiter/lease.js';
import { WaitQueues } from '../../app/waiting/wait-queues.js';
import type { LeaseEnd } from '../../engine/algorithms/algorithm.js';
import type { Rule } from '../../app/rules/rule.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { heldOf } from '../../storage/stores/store-decision.js';
import type { Store } from '../../storage/stores/store.js';
import { type Answer, answerOf } from '../../app/transports/answer.js';
import type { ClosableResponse } from '../../app/transports/connection.js';
import { isPromise } from '../../engine/util/awaitable.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import { Answers } from './answers.js';
import { giveBack, type RequestCharge, type StoreCheck, weigh } from './charges.js';
import { countedUnits, leaseEndOf } from './outcome.js';
import { clientClosedRequest } from './call-run.js';
import { DelayedRequests } from './delayed-requests.js';
import { HiddenResponses } from './response-headers.js';
import type { LimitedRequest } from './limited-request.js';
import { RequestCompletion } from './request-completion.js';
import { type AnsweredRequest, SlowReaders } from './slow-readers.js';

interface Held {
  readonly lease: Lease;
  readonly limit: CompiledLimit;
}

/** A charge, and the result of its limit's `count`: a boolean or a number of units. */
interface CountedCharge {
  readonly charge: RequestCharge;
  readonly counted: boolean | number;
}

/** Completes requests: holds those that a limit delays. At the end, refunds requests that do not count, and releases leases. */
@Injectable()
export class Completions {
  private readonly attempts = new Attempts(logger);
  private readonly hidden = new HiddenResponses();

  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    private readonly queues: WaitQueues,
    private readonly holds: DelayedRequests,
    private readonly answers: Answers,
    private readonly slowReaders: SlowReaders,
  ) {}

  /** Records the charges of an allowed check. Returns a promise if the request has to wait before it continues. */
  complete(request: LimitedRequest, check: StoreCheck): Promise<void> | undefined {
    if (!check.refundable) {
      request.deferCharge(check);
      return undefined;
    }
    const charges = request.charge(check);
    this.releaseAtEnd(request, check, charges);
    const delayMs = delayOf(check);
    return delayMs > 0 ? this.hold(request, charges, delayMs) : undefined;
  }

  /** Ends a request that is rejected with an error. Without a connection, nothing else reports the end. */
  refuse({ completion }: LimitedRequest, earlier: LimitedRequest | undefined, error: unknown): unknown {
    for (const each of [completion, earlier?.completion]) if (each !== undefined) each.wasRefused = true;
    completion?.handlerEnded({ failed: true, error });
    return error;
  }

  /** Holds a request. Rejects if its client leaves or the app shuts down. */
  private async hold(request: LimitedRequest, charges: readonly RequestCharge[], delayMs: number): Promise<void> {
    const end = await this.holds.delay(delayMs, request.connection);
    if (end === 'over') return request.completion?.measureAgain();
    await giveBack(charges);
    throw end === 'closed' ? clientClosedRequest() : this.answers.shuttingDown(request);
  }

  /** At the end of the request, refunds units that do not count, and releases leases. */
  private releaseAtEnd(request: LimitedRequest, check: StoreCheck, charges: readonly RequestCharge[]): void {
    const waiting = charges.filter(({ rule }) => rule.waitsForEnd);
    if (waiting.length === 0) return;
    const held = check.entries.flatMap((entry, index) => {
      const units = heldOf(entry, check.decisions[index]!);
      return units === undefined ? [] : [{ lease: new Lease(units, this.store, this.queues), limit: entry.limit }];
    });
    const leases = held.map(({ lease }) => lease);
    request.hold(leases);
    const { context, connection } = request;
    // Without a connection, only a running handler reports the end.
    if (connection === undefined) this.hidden.warnOfEnd(request.parts.response, context);
    else for (const lease of leases) lease.keepAlive();
    const completion = (request.completion ??= new RequestCompletion(context, connection));
    if (request.run !== undefined) completion.follow(request.run);
    if (waiting.some(({ rule }) => rule.measures)) completion.measure();
    if (held.length > 0) this.releaseHeld(completion, connection, held);
    completion.onEnd((outcome) => {
      this.giveBackUncounted(waiting, outcome).catch(logFailure);
    });
  }

  /** Releases leases once the request is over, or its client and the parts still running have used up their time. */
  private releaseHeld(
    completion: RequestCompletion,
    connection: ClosableResponse | undefined,
    held: readonly Held[],
  ): void {
    if (connection !== undefined) this.releaseAnswered(completion, answerOf(connection), held);
    completion.onLingering(() => {
      for (const { lease } of held) lease.rest();
    });
    completion.onOver((outcome) => release(held, endOf(completion, outcome)));
  }

  /** Releases leases that limit load as soon as only the client has something left to do, and the others when the client's time is up. */
  private releaseAnswered(completion: RequestCompletion, answer: Answer, held: readonly Held[]): void {
    const load = held.filter(({ limit }) => limit.adapts);
    const slots = held.filter(({ limit }) => !limit.adapts);
    const request: AnsweredRequest = {
      answer,
      get isServed() {
        return completion.isServed;
      },
      isEnforced: slots.some(({ limit }) => !limit.shadow),
      release: () => release(slots, 'ignored'),
      releaseLoad: () => release(load, 'ignored'),
    };
    completion.onServed((outcome) => release(load, endOf(completion, outcome)));
    this.slowReaders.follow(request);
    completion.onOver(() => this.slowReaders.forget(request));
  }

  /**
   * Refunds charges that do not count, based on the outcome, and settles those that count a different number of units. A function that is
   * slow, or never returns, does not delay other limits.
   */
  private async giveBackUncounted(charges: readonly RequestCharge[], outcome: Outcome): Promise<void> {
    const countable = charges.filter(({ limit }) => limit.algorithm.leases === undefined);
    const known: CountedCharge[] = [];
    const promised: Promise<void>[] = [];
    for (const charge of countable) {
      warnIfUnknown(charge.rule, outcome);
      const counted = countedUnits(charge.rule, outcome, this.attempts);
      if (isPromise(counted)) promised.push(counted.then((units) => settleCounted([{ charge, counted: units }])));
      else known.push({ charge, counted });
    }
    await Promise.all([settleCounted(known), ...promised]);
  }
}

/** Refunds charges that do not count, and adjusts the others to the units that they count. */
async function settleCounted(charges: readonly CountedCharge[]): Promise<void> {
  const weighed = charges.filter(({ charge, counted }) => typeof counted === 'number' && !charge.settled);
  await Promise.all([
    giveBack(charges.filter(({ counted }) => counted === false).map(({ charge }) => charge)),
    ...weighed.map(({ charge, counted }) => weigh(charge, counted as number)),
  ]);
}

/** Warns once of a limit whose requests have no bytes. */
function warnIfUnknown({ name, settings }: Rule, { bytes, context }: Outcome): void {
  if (settings.measure?.by !== 'bytes' || bytes !== undefined) return;
  settings.log.warn(messages.notMeasured(name, context.getType()));
}

/** The delay of one check; earlier delays have already passed. */
function delayOf({ entries, decisions }: StoreCheck): number {
  return Math.max(...decisions.map(({ delayMs }, index) => (entries[index]!.limit.shadow ? 0 : delayMs)));
}

/** The end of a request, as a signal of load. Neither a rejection nor a slow client is one. */
function endOf({ wasRefused, wasRead }: RequestCompletion, outcome: Outcome): LeaseEnd {
  return wasRefused || !wasRead ? 'ignored' : leaseEndOf(outcome);
}

/** The store isn't awaited. A custom store that fails in an unusual way must not terminate the process. */
function release(held: readonly Held[], end: LeaseEnd): void {
  for (const { lease } of held) lease.release(end).catch(logFailure);
}

function logFailure(error: unknown): void {
  const [reason, stack] = error instanceof Error ? [String(error), error.stack] : [reasonOf(error), undefined];
  logger.error(messages.storeFailed(reason), stack);
}
