import { finished, Readable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';

/** Ends a part of a call; a second call does nothing. */
export type EndPart = () => void;

/**
 * What is running of one call: its guards, interceptors and pipes, its handler, and whatever these leave behind when nobody waits
 * for them any more. Some of that may never end, such as a generator that waits for an event after its reader has left: it
 * lingers.
 */
export class CallRun {
  private working = 0;
  private lingering = 0;
  private handedOver: EndPart | undefined;
  private readonly idleListeners: (() => void)[] = [];
  private readonly refusalListeners: ((error: unknown) => void)[] = [];

  /** Whether nothing of it is running. */
  get isIdle(): boolean {
    return this.working === 0 && this.lingering === 0;
  }

  /** Whether only parts are running that may never end. */
  get isLingering(): boolean {
    return this.working === 0 && this.lingering > 0;
  }

  /** Calls back each time that a part ends and nothing, or only what lingers, is left. */
  onIdle(listener: () => void): void {
    this.idleListeners.push(listener);
  }

  /** Calls back if a guard refuses the call. */
  onRefused(listener: (error: unknown) => void): void {
    this.refusalListeners.push(listener);
  }

  /** Begins a part that ends by itself. */
  begin(): EndPart {
    this.working++;
    return this.once(() => this.working--);
  }

  /** Begins a part that may never end. */
  linger(): EndPart {
    this.lingering++;
    return this.once(() => this.lingering--);
  }

  /** A part that runs until a promise settles. */
  during(work: Promise<unknown>): void {
    const end = this.begin();
    work.then(end, end);
  }

  /** A part that lingers until a promise settles. */
  lingerDuring(work: Promise<unknown>): void {
    const end = this.linger();
    work.then(end, end);
  }

  /** The guards. If they let the call pass, its interceptors follow at once, or never. */
  guards(activated: Promise<boolean>): void {
    const end = this.begin();
    const refused = (error?: unknown) => {
      for (const listener of this.refusalListeners) listener(error);
      end();
    };
    activated.then((isActivated) => (isActivated ? this.handOver(end) : refused()), refused);
  }

  /** Something that makes the Observable to which the caller subscribes at once, or never. */
  prepares(prepared: Promise<unknown>): void {
    const end = this.begin();
    this.takeOver();
    prepared.then(() => this.handOver(end), end);
  }

  /** Notes that the next part has begun. */
  takeOver(): void {
    this.handedOver?.();
    this.handedOver = undefined;
  }

  /** A stream that the handler returned runs until it is closed: there may be a generator behind it. */
  lingerWith(value: unknown): void {
    const stream: unknown = value instanceof StreamableFile ? value.getStream() : value;
    if (stream instanceof Readable) finished(stream, { error: false, writable: false }, this.linger());
  }

  /** Keeps a part running until the next one begins, in this turn of the event loop. */
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

/** The runs of calls by their arguments: all guards of a call get the same array, and so do all of its interceptors. */
const runs = new WeakMap<object, CallRun>();

/** The run of a call that Nest executes. */
export function runOf(args: object): CallRun | undefined {
  return runs.get(args);
}

/** Keeps the run of a call. */
export function keepRun(args: object, run: CallRun): CallRun {
  runs.set(args, run);
  return run;
}
