import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { type RateLimitSettings } from '../../app/config/settings.js';
import { RATE_LIMIT_SETTINGS } from '../../app/config/tokens.js';
import type { Answer } from '../../app/transports/answer.js';

/** The interval at which responses are checked, in milliseconds; shorter if clients have little time. */
const LOOK_MS = 500;
const LOOKS = 4;
/** A client that reads this many bytes per second is not slow while its response is being written. */
const FAIR_RATE = 16_384;
/** A response that has waited for its client for this many milliseconds no longer counts as load. */
const WAITING_MS = 1000;

/** A request that may hold leases while its response is sent. */
export interface AnsweredRequest {
  readonly answer: Answer;
  /** True if no part of the request runs any more, and only its client still reads. */
  readonly isServed: boolean;
  /** True if the leases that it holds are enforced: those of a shadow limit are not. */
  readonly isEnforced: boolean;
  /** Releases all leases. */
  release(): void;
  /** Releases the leases of limits that measure load. */
  releaseLoad(): void;
}

/** Prevents clients from holding leases for long by reading slowly. */
@Injectable()
export class SlowReaders implements OnModuleDestroy {
  private readonly requests = new Map<AnsweredRequest, number>();
  private timer: NodeJS.Timeout | undefined;
  private lookedAt = 0;

  constructor(@Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings) {}

  /** Tracks how the client of a request reads its response. */
  follow(request: AnsweredRequest): void {
    this.requests.set(request, 0);
    if (this.timer !== undefined) return;
    this.lookedAt = performance.now();
    this.timer = setInterval(() => this.look(), this.everyMs).unref();
  }

  /** Stops tracking a request that is over. */
  forget(request: AnsweredRequest): void {
    this.requests.delete(request);
  }

  onModuleDestroy(): void {
    this.requests.clear();
    this.stop();
  }

  private get everyMs(): number {
    return Math.max(1, Math.min(LOOK_MS, this.settings.sendTimeoutMs / LOOKS));
  }

  private stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    if (this.requests.size === 0) return this.stop();
    const now = performance.now();
    // While the event loop was delayed, no client could read.
    const passedMs = Math.min(now - this.lookedAt, 2 * this.everyMs);
    this.lookedAt = now;
    // Several requests may share a response. The bytes that its client has read are reported only once.
    const waits = new Map<Answer, number>();
    for (const [request, waitedMs] of this.requests) {
      const { answer } = request;
      let waitMs = waits.get(answer);
      if (waitMs === undefined) waits.set(answer, (waitMs = waitOf(answer, passedMs)));
      this.waited(request, Math.max(0, waitedMs + waitMs), waitMs > 0);
    }
  }

  /** Records that a request has waited for its client for `waitedMs` in total. */
  private waited(request: AnsweredRequest, waitedMs: number, waits: boolean): void {
    this.requests.set(request, waitedMs);
    if (!waits) return;
    const { answer } = request;
    if (waitedMs >= WAITING_MS && (!answer.isComplete || request.isServed)) request.releaseLoad();
    if (waitedMs < this.settings.sendTimeoutMs) return;
    if (answer.isComplete ? !request.isServed : request.isEnforced) {
      // Its handler is running, or the response is being written, which continues unless the connection is closed.
      if (!answer.isComplete) answer.cut();
      return;
    }
    this.requests.delete(request);
    request.release();
  }
}

/**
 * The part of the elapsed time that counts as waiting for a client. While a response is still being written, reading makes up for waiting;
 * once everything has been sent, all time counts.
 */
function waitOf(answer: Answer, passedMs: number): number {
  const takenMs = (1000 * answer.taken()) / FAIR_RATE;
  if (answer.isComplete) return passedMs;
  return (answer.isBlocked ? passedMs : 0) - takenMs;
}
