import type { DispatchController } from './undici-types.js';

/** Controls a request while it waits and after it was sent. A handler has one controller for all attempts. */
export class WaitingController implements DispatchController {
  private readonly abortion = new AbortController();
  private current: DispatchController | undefined;
  private isPaused = false;

  /** Aborts when the handler aborts. */
  get signal(): AbortSignal {
    return this.abortion.signal;
  }

  get aborted(): boolean {
    return this.signal.aborted;
  }

  get paused(): boolean {
    return this.current?.paused ?? this.isPaused;
  }

  get reason(): Error | null {
    return (this.signal.reason as Error | undefined) ?? null;
  }

  get rawHeaders(): unknown {
    return this.current?.rawHeaders;
  }

  get rawTrailers(): unknown {
    return this.current?.rawTrailers;
  }

  /** Switches to the controller of an attempt that was sent. */
  follow(controller: DispatchController): void {
    this.current = controller;
    if (this.aborted) controller.abort(this.reason!);
    else if (this.isPaused) controller.pause();
  }

  abort(reason: Error): void {
    this.abortion.abort(reason);
    this.current?.abort(reason);
  }

  pause(): void {
    this.isPaused = true;
    this.current?.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.current?.resume();
  }
}
