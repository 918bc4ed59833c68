import type { HttpException } from '@nestjs/common';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { RateLimitExceededException } from '../../app/http/rate-limit.exceptions.js';
import { refusalData } from '../../app/transports/refusal.js';
import { type Awaitable, isPromise } from '../../engine/util/awaitable.js';
import { reasonOf } from '../../engine/errors/reasons.js';

const log = new OnceLogger(logger);

/** Rejected frames are forgotten after this many milliseconds without another one. */
const FORGIVEN_AFTER_MS = 60_000;

/** Maximum number of frames of one connection that wait for their decisions. */
const MOST_WAITING = 10_000;

/** A connection, as the gate uses it. */
export interface GatedConnection {
  /** True if frames still reach handlers. */
  readonly isOpen: boolean;
  /** Checks the limits of a frame that counts as `frames` frames. */
  decide(data: unknown, frames: number): Awaitable<HttpException | undefined>;
  /** Sends the event `exception` to the client of a rejected frame. */
  notify(data: unknown, event: object): void;
  /** Closes the connection because too many of its frames were rejected. */
  close(): void;
}

/** Passes the frames of one connection on in their order, unless a limit rejects them. */
export class FrameGate {
  private refused = 0;
  private lastRefusal = 0;
  private waiting = 0;
  /** The last pending step, while anything waits. */
  private last: Promise<void> | undefined;

  constructor(
    private readonly connection: GatedConnection,
    private readonly closeAfter: number,
  ) {}

  /**
   * Passes a frame on if its limits have room.
   *
   * @param refused called if a limit rejects the frame
   * @param frames the number of frames to count it as
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

  /** Calls back once everything before has passed; immediately if nothing waits. */
  inTurn(pass: () => void): void {
    if (this.last === undefined) return pass();
    this.wait(Promise.resolve(pass));
  }

  /** Passes on a frame that was decided together with an earlier one, when its turn comes. */
  follow(pass: () => void): void {
    if (this.isReady) this.inTurn(pass);
  }

  /** Counts a rejected frame. */
  countRefused(): void {
    const now = performance.now();
    if (now - this.lastRefusal > FORGIVEN_AFTER_MS) this.refused = 0;
    this.lastRefusal = now;
    if (++this.refused >= this.closeAfter) this.overflow();
  }

  /** True if another frame can be queued. A client that sends faster than the store decides must not fill the memory. */
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
      // The error comes from a listener of the app. The listeners after it must still get their frames.
      log.error(socketMessages.listenerFailed(), error instanceof Error ? error.stack : reasonOf(error));
    }
  }

  private refuse(data: unknown, refusal: HttpException): void {
    if (!this.connection.isOpen) return;
    this.connection.notify(data, refusalData(refusal));
    // Connections stay open while the store fails.
    if (refusal instanceof RateLimitExceededException) this.countRefused();
  }

  private overflow(): void {
    if (this.connection.isOpen) this.connection.close();
  }
}
