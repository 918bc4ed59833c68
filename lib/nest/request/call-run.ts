import { finished, Readable } from 'node:stream';
import { HttpException, StreamableFile } from '@nestjs/common';
import { messages } from '../../engine/errors/messages/general.js';

/** Ends a part of a call; a second call has no effect. */
export type EndPart = () => void;

/**
 * The running parts of one call: its guards, interceptors and pipes, its handler, and what these leave behind when nothing awaits it any
 * more. Some of that may never end, such as a generator that waits for an event after its reader has left: it lingers.
 */
export class CallRun {
  /** The latest error of an interceptor. */
  thrown: { readonly error: unknown } | undefined;
  private working = 0;
  private lingering = 0;
  private handedOver: EndPart | undefined;
  private readonly idleListeners: (() => void)[] = [];
  private readonly refusalListeners: ((error: unknown) => void)[] = [];

  /** True if no part is running. */
  get isIdle(): boolean {
    return this.working === 0 && this.lingering === 0;
  }

  /** True if all running parts linger. */
  get isLingering(): boolean {
    return this.working === 0 && this.lingering > 0;
  }

  /** Calls back once no part is running, or only lingering ones are: at once, if that is the case. */
  whenIdle(listener: () => void): void {
    if (this.working === 0) return listener();
    let called = false;
    this.onIdle(() => {
      if (!called) listener();
      called = true;
    });
  }

  /** Calls back each time a part ends and no other part is running, or only lingering ones are. */
  onIdle(listener: () => void): void {
    this.idleListeners.push(listener);
  }

  /** Calls back if a guard rejects the call. */
  onRefused(listener: (error: unknown) => void): void {
    this.refusalListeners.push(listener);
  }

  /** Starts a part that will end. */
  begin(): EndPart {
    this.working++;
    return this.once(() => this.working--);
  }

  /** Starts a part that may never end. */
  linger(): EndPart {
    this.lingering++;
    return this.once(() => this.lingering--);
  }

  /** A part that runs until a promise settles. */
  during(work: Promise<unknown>): void {
    const end = this.begin();
    work.then(end, end);
  }

  /** Starts a part that lingers until a promise settles. */
  lingerDuring(work: Promise<unknown>): void {
    const end = this.linger();
    work.then(end, end);
  }

  /** Starts the part of the guards. If they let the call pass, its interceptors follow immediately; otherwise they never do. */
  guards(activated: Promise<boolean>): void {
    const end = this.begin();
    const refused = (error?: unknown) => {
      for (const listener of this.refusalListeners) listener(error);
      end();
    };
    activated.then((isActivated) => (isActivated ? this.handOver(end) : refused()), refused);
  }

  /** Starts a part that creates an Observable. The caller subscribes to it immediately or never. */
  prepares(prepared: Promise<unknown>): void {
    const end = this.begin();
    this.takeOver();
    prepared.then(() => this.handOver(end), end);
  }

  /** Called when the next part has begun. */
  takeOver(): void {
    this.handedOver?.();
    this.handedOver = undefined;
  }

  /** A stream that the handler returned lingers until it is closed, because there may be a generator behind it. */
  lingerWith(value: unknown): void {
    const stream: unknown = value instanceof StreamableFile ? value.getStream() : value;
    if (stream instanceof Readable) finished(stream, { error: false, writable: false }, this.linger());
  }

  /** Keeps a part running until the next one begins in the same turn of the event loop. */
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

/**
 * The runs of calls by their arguments. All guards of a call receive the same array, and all of its interceptors receive the same array.
 */
const runs = new WeakMap<object, CallRun>();

/** The run of a call that Nest executes. */
export function runOf(args: object): CallRun | undefined {
  return runs.get(args);
}

/** Stores the run of a call. */
export function keepRun(args: object, run: CallRun): CallRun {
  runs.set(args, run);
  return run;
}

/** The status that nginx uses if a client closed the connection before the response. */
const CLIENT_CLOSED_REQUEST = 499;

/** The exception for a request whose client has left. */
export function clientClosedRequest(): HttpException {
  return new HttpException(messages.clientClosedRequest(), CLIENT_CLOSED_REQUEST);
}
