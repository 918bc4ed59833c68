import type { HttpException } from '@nestjs/common';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { RateLimitExceededException } from '../../app/http/rate-limit-exceeded.exception.js';
import { refusalData } from '../../app/transports/refusal.js';
import { type Awaitable, isPromise } from '../../engine/util/awaitable.js';
import { reasonOf } from '../../engine/util/reason-of.js';

const log = new OnceLogger(logger);

/** Refused frames are forgotten after this time without one, in milliseconds. */
const FORGIVEN_AFTER_MS = 60_000;

/** The most frames of one connection that wait for their decisions. */
const MOST_WAITING = 10_000;

/** A connection, as the gate uses it. */
export interface GatedConnection {
  /** Whether frames still reach handlers. */
  readonly isOpen: boolean;
  /** Decides a frame that counts as several. */
  decide(data: unknown, frames: number): Awaitable<HttpException | undefined>;
  /** Sends the event `exception` to the client of a refused frame. */
  notify(data: unknown, event: object): void;
  /** Closes the connection: too many of its frames were refused. */
  close(): void;
}

/** Lets the frames of one connection pass in their order, unless a limit refuses them. */
export class FrameGate {
  private refused = 0;
  private lastRefusal = 0;
  private waiting = 0;
  /** What happened last, while anything waits. */
  private last: Promise<void> | undefined;

  constructor(
    private readonly connection: GatedConnection,
    private readonly closeAfter: number,
  ) {}

  /**
   * Lets a frame pass if its limits allow it.
   *
   * @param refused called if they do not
   * @param frames as how many it counts
   */
  frame(data: unknown, pass: () => void, refused?: () => void, frames = 1): void {
    const { connection } = this;
    if (!this.isReady) return;
    const decided = connection.decide(data, frames);
    const conclude = (refusal: HttpException | undefined) => {
      if (refusal === undefined) return pass();
      refused?.();
      this.refuse(data, refusal);
    };
    if (!isPromise(decided)) return this.inTurn(() => conclude(decided));
    this.wait(decided.then((refusal) => () => conclude(refusal)));
  }

  /** Calls back once everything before has passed: at once if nothing waits. */
  inTurn(pass: () => void): void {
    if (this.last === undefined) return pass();
    this.wait(Promise.resolve(pass));
  }

  /** Lets a frame have its turn that is decided with one before it. */
  follow(pass: () => void): void {
    if (this.isReady) this.inTurn(pass);
  }

  /** Counts a refused frame. */
  countRefused(): void {
    const now = performance.now();
    if (now - this.lastRefusal > FORGIVEN_AFTER_MS) this.refused = 0;
    this.lastRefusal = now;
    if (++this.refused >= this.closeAfter) this.overflow();
  }

  /** Whether another frame can be taken. A client that sends faster than the store decides must not fill the memory. */
  private get isReady(): boolean {
    if (!this.connection.isOpen) return false;
    if (this.waiting < MOST_WAITING) return true;
    this.overflow();
    return false;
  }

  private wait(next: Promise<() => void>): void {
    this.waiting++;
    const turn = this.take(next, this.last).finally(() => {
      this.waiting--;
      if (this.last === turn) this.last = undefined;
    });
    this.last = turn;
  }

  private async take(next: Promise<() => void>, before: Promise<void> | undefined): Promise<void> {
    const [pass] = await Promise.all([next, before]);
    try {
      pass();
    } catch (error) {
      // Listeners of the app; those after it must get their frames.
      log.error(socketMessages.listenerFailed(), error instanceof Error ? error.stack : reasonOf(error));
    }
  }

  private refuse(data: unknown, refusal: HttpException): void {
    if (!this.connection.isOpen) return;
    this.connection.notify(data, refusalData(refusal));
    // While the store fails, connections stay.
    if (refusal instanceof RateLimitExceededException) this.countRefused();
  }

  private overflow(): void {
    if (this.connection.isOpen) this.connection.close();
  }
}
