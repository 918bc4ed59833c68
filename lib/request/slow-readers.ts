import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { type RateLimitSettings } from '../config/settings.js';
import { RATE_LIMIT_SETTINGS } from '../config/tokens.js';
import type { Answer } from '../transports/answer.js';

/** How often answers are looked at, in milliseconds; more often if clients have little time. */
const LOOK_MS = 500;
const LOOKS = 4;
/** Bytes a second from which a client is not slow while its answer is being written. */
const FAIR_RATE = 16_384;
/** From then on an answer that waits for its client says nothing of load, and is none. */
const WAITING_MS = 1000;

/** What a request holds while its answer goes out. */
export interface AnsweredRequest {
  readonly answer: Answer;
  /** Whether nothing of the request is at work any more, but its client reads. */
  readonly isServed: boolean;
  /** Whether what it holds is refused to others: that of a shadow is not. */
  readonly isEnforced: boolean;
  /** Gives back what it holds. */
  release(): void;
  /** Gives back what it holds for its load. */
  releaseLoad(): void;
}

/** Sees to it that clients hold nothing for long by reading their answers slowly. */
@Injectable()
export class SlowReaders implements OnModuleDestroy {
  private readonly requests = new Map<AnsweredRequest, number>();
  private timer: NodeJS.Timeout | undefined;
  private lookedAt = 0;

  constructor(@Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings) {}

  /** Follows how the client of a request takes its answer. */
  follow(request: AnsweredRequest): void {
    this.requests.set(request, 0);
    if (this.timer !== undefined) return;
    this.lookedAt = performance.now();
    this.timer = setInterval(() => this.look(), this.everyMs).unref();
  }

  /** The request is over. */
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
    // While the event loop was late, nobody could read.
    const passedMs = Math.min(now - this.lookedAt, 2 * this.everyMs);
    this.lookedAt = now;
    // What a client has taken of an answer that several requests share is told once.
    const waits = new Map<Answer, number>();
    for (const [request, waitedMs] of this.requests) {
      const { answer } = request;
      let waitMs = waits.get(answer);
      if (waitMs === undefined) waits.set(answer, (waitMs = waitOf(answer, passedMs)));
      this.waited(request, Math.max(0, waitedMs + waitMs), waitMs > 0);
    }
  }

  /** A request has waited for its client for `waitedMs` in all. */
  private waited(request: AnsweredRequest, waitedMs: number, waits: boolean): void {
    this.requests.set(request, waitedMs);
    if (!waits) return;
    const { answer } = request;
    if (waitedMs >= WAITING_MS && (!answer.isComplete || request.isServed)) request.releaseLoad();
    if (waitedMs < this.settings.sendTimeoutMs) return;
    if (answer.isComplete ? !request.isServed : request.isEnforced) {
      // Something of it is at work: its handler, or what writes the answer, which goes on unless the connection is closed.
      if (!answer.isComplete) answer.cut();
      return;
    }
    this.requests.delete(request);
    request.release();
  }
}

/**
 * How much longer a client has been waited for, of a time that has passed. What it takes of an answer that is being written makes up for
 * its waits; one that has been sent everything is waited for whatever it reads.
 */
function waitOf(answer: Answer, passedMs: number): number {
  const takenMs = (1000 * answer.taken()) / FAIR_RATE;
  if (answer.isComplete) return passedMs;
  return (answer.isBlocked ? passedMs : 0) - takenMs;
}
