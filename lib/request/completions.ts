import { Inject, Injectable } from '@nestjs/common';
import type { Outcome } from '../config/common-limit-options.js';
import { RATE_LIMIT_STORE } from '../config/tokens.js';
import { Attempts } from '../errors/attempts.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages/general.js';
import { Lease } from '../limiter/lease.js';
import { WaitQueues } from '../waiting/wait-queues.js';
import type { LeaseEnd } from '../algorithms/algorithm.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { Rule } from '../rules/rule.js';
import { heldOf } from '../stores/store-decision.js';
import type { Store } from '../stores/store.js';
import { type Answer, answerOf } from '../transports/answer.js';
import type { ClosableResponse } from '../transports/connection.js';
import { type Awaitable, isPromise, mapAll } from '../util/awaitable.js';
import { reasonOf } from '../util/reason-of.js';
import { Answers } from './answers.js';
import { giveBack, type RequestCharge, type StoreCheck } from './charges.js';
import { clientClosedRequest } from './client-closed-request.js';
import { Holds } from './holds.js';
import { leaseEndOf } from './lease-end.js';
import type { LimitedRequest } from './limited-request.js';
import { RequestCompletion } from './request-completion.js';
import { type AnsweredRequest, SlowReaders } from './slow-readers.js';

/** A lease, and the limit that it is of. */
interface Held {
  readonly lease: Lease;
  readonly limit: CompiledLimit;
}

/** Completes requests: holds what a limit delays, and at the end gives back what does not count and releases what was held. */
@Injectable()
export class Completions {
  private readonly attempts = new Attempts(logger);

  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    private readonly queues: WaitQueues,
    private readonly holds: Holds,
    private readonly answers: Answers,
    private readonly slowReaders: SlowReaders,
  ) {}

  /** Keeps what an allowed check charged. Returns a promise if the request has to wait before it goes on. */
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

  /** Ends a request that is refused with an error: where there is no connection, nothing else reports the end. */
  refuse({ completion }: LimitedRequest, earlier: LimitedRequest | undefined, error: unknown): unknown {
    for (const each of [completion, earlier?.completion]) if (each !== undefined) each.wasRefused = true;
    completion?.handlerEnded({ failed: true, error });
    return error;
  }

  /** Holds a request. Rejects if nothing is left to hold it for. */
  private async hold(request: LimitedRequest, charges: readonly RequestCharge[], delayMs: number): Promise<void> {
    const end = await this.holds.hold(delayMs, request.connection);
    if (end === 'over') return;
    await giveBack(charges);
    throw end === 'closed' ? clientClosedRequest() : this.answers.shuttingDown(request);
  }

  /** Gives back what does not count, and releases what is held, once the request ends. */
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
    // Without a connection only a handler that runs reports the end.
    if (connection !== undefined) for (const lease of leases) lease.keepAlive();
    const completion = (request.completion ??= new RequestCompletion(context, connection));
    if (request.run !== undefined) completion.follow(request.run);
    if (held.length > 0) this.releaseHeld(completion, connection, held);
    completion.onEnd((outcome) => {
      this.giveBackUncounted(waiting, outcome).catch(logFailure);
    });
  }

  /** Releases what is held once the request is over, or the time that its client and its leftovers have. */
  private releaseHeld(
    completion: RequestCompletion,
    connection: ClosableResponse | undefined,
    held: readonly Held[],
  ): void {
    if (connection !== undefined) this.releaseAnswered(completion, answerOf(connection), held);
    const leases = held.map(({ lease }) => lease);
    completion.onLingering(() => {
      for (const lease of leases) lease.rest();
    });
    completion.onOver((outcome) => release(leases, endOf(completion, outcome)));
  }

  /** Releases what is held for load once only the client is waited for, and what else is held after the time that it has. */
  private releaseAnswered(completion: RequestCompletion, answer: Answer, held: readonly Held[]): void {
    const load = held.filter(({ limit }) => limit.adapts).map(({ lease }) => lease);
    const slots = held.filter(({ limit }) => !limit.adapts);
    const request: AnsweredRequest = {
      answer,
      get isServed() {
        return completion.isServed;
      },
      isEnforced: slots.some(({ limit }) => !limit.shadow),
      release: () =>
        release(
          slots.map(({ lease }) => lease),
          'ignored',
        ),
      releaseLoad: () => release(load, 'ignored'),
    };
    completion.onServed((outcome) => release(load, endOf(completion, outcome)));
    this.slowReaders.follow(request);
    completion.onOver(() => this.slowReaders.forget(request));
  }

  /** Gives back what does not count, as the request ended so. */
  private async giveBackUncounted(charges: readonly RequestCharge[], outcome: Outcome): Promise<void> {
    const countable = charges.filter(({ limit }) => limit.algorithm.holding === undefined);
    const collected = mapAll(countable, ({ rule }) => this.counts(rule, outcome));
    const counted = isPromise(collected) ? await collected : collected;
    await giveBack(countable.filter((_, index) => !counted[index]));
  }

  /** A failing function of the user's must not make a request free. */
  private counts(rule: Rule, outcome: Outcome): Awaitable<boolean> {
    const failed = (error: unknown) => {
      this.attempts.report(messages.countFailed(rule.name), error);
      return true;
    };
    try {
      const counted = rule.counts(outcome);
      return isPromise(counted) ? Promise.resolve(counted).catch(failed) : counted;
    } catch (error) {
      return failed(error);
    }
  }
}

/** The delay of one check: what an earlier one delayed has been held. */
function delayOf({ entries, decisions }: StoreCheck): number {
  return Math.max(...decisions.map(({ delayMs }, index) => (entries[index]!.limit.shadow ? 0 : delayMs)));
}

/** What the end of a request says of load: a refusal says nothing of it, nor does how long a client takes to read its answer. */
function endOf({ wasRefused, wasRead }: RequestCompletion, outcome: Outcome): LeaseEnd {
  return wasRefused || !wasRead ? 'ignored' : leaseEndOf(outcome);
}

/** Nothing waits for the store: one of the user's own that fails otherwise than stores do must not end the process. */
function release(leases: readonly Lease[], end: LeaseEnd): void {
  for (const lease of leases) lease.release(end).catch(logFailure);
}

function logFailure(error: unknown): void {
  const [reason, stack] = error instanceof Error ? [String(error), error.stack] : [reasonOf(error), undefined];
  logger.error(messages.storeFailed(reason), stack);
}
