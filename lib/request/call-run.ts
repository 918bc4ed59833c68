import { finished, Readable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';

/** Ends a part of a call; a second call ends nothing. */
export type EndPart = () => void;

/**
 * What of one call is at work: its guards, interceptors and pipes, its handler, and what these leave behind when nobody waits for them
 * any more. Some of it may never end, as a generator that waits for an event when its reader has left: that lingers.
 */
export class CallRun {
  private working = 0;
  private lingering = 0;
  private handedOver: EndPart | undefined;
  private readonly idleListeners: (() => void)[] = [];
  private readonly refusalListeners: ((error: unknown) => void)[] = [];

  /** Whether nothing of it is at work. */
  get isIdle(): boolean {
    return this.working === 0 && this.lingering === 0;
  }

  /** Whether only that is left which may never end. */
  get isLingering(): boolean {
    return this.working === 0 && this.lingering > 0;
  }

  /** Calls back each time that a part has ended, and nothing or only what lingers is left. */
  onIdle(listener: () => void): void {
    this.idleListeners.push(listener);
  }

  /** Calls back if a guard refuses the call. */
  onRefused(listener: (error: unknown) => void): void {
    this.refusalListeners.push(listener);
  }

  /** A part begins, which ends by itself. */
  begin(): EndPart {
    this.working++;
    return this.once(() => this.working--);
  }

  /** A part begins that may never end. */
  linger(): EndPart {
    this.lingering++;
    return this.once(() => this.lingering--);
  }

  /** A part that is at work until a promise has settled. */
  during(work: Promise<unknown>): void {
    const end = this.begin();
    work.then(end, end);
  }

  /** A part that lingers until a promise has settled. */
  lingerDuring(work: Promise<unknown>): void {
    const end = this.linger();
    work.then(end, end);
  }

  /** The guards run. Where they let the call pass, its interceptors follow at once, or never. */
  guards(activated: Promise<boolean>): void {
    const end = this.begin();
    const refused = (error?: unknown) => {
      for (const listener of this.refusalListeners) listener(error);
      end();
    };
    activated.then((isActivated) => (isActivated ? this.handOver(end) : refused()), refused);
  }

  /** Something makes the Observable that the caller listens to at once, or never. */
  prepares(prepared: Promise<unknown>): void {
    const end = this.begin();
    this.takeOver();
    prepared.then(() => this.handOver(end), end);
  }

  /** What was to follow has begun. */
  takeOver(): void {
    this.handedOver?.();
    this.handedOver = undefined;
  }

  /** A stream that the handler gave is at work until it is closed: a generator may be behind it. */
  lingerWith(value: unknown): void {
    const stream: unknown = value instanceof StreamableFile ? value.getStream() : value;
    if (stream instanceof Readable) finished(stream, { error: false, writable: false }, this.linger());
  }

  /** A part goes on until the next one begins, which it does in this turn of the event loop. */
  private handOver(end: EndPart): void {
    this.handedOver = end;
    setImmediate(end);
  }

  private once(end: () => void): EndPart {
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      end();
      if (this.working === 0) for (const listener of this.idleListeners) listener();
    };
  }
}

/** The runs of calls, by the lists of their arguments: all guards of a call are given one list, and so are all of its interceptors. */
const runs = new WeakMap<object, CallRun>();

/** The run of a call, where Nest leads it. */
export function runOf(args: object): CallRun | undefined {
  return runs.get(args);
}

/** Keeps the run of a call. */
export function keepRun(args: object, run: CallRun): CallRun {
  runs.set(args, run);
  return run;
}
