import { getOrMake } from '../../engine/util/objects.js';
import type { ClosableResponse } from './connection.js';

/** The state of a Node response that shows how fast its client reads; for HTTP/2, part of it is in the stream. */
interface NodeAnswer extends ClosableResponse {
  readonly writableEnded?: boolean;
  readonly writableNeedDrain?: boolean;
  readonly stream?: { readonly writableNeedDrain?: boolean; destroy?(): void };
  readonly socket?: { readonly _handle?: Handle | null } | null;
  once(event: 'prefinish' | 'drain' | 'close', listener: () => void): unknown;
  on?(event: 'drain', listener: () => void): unknown;
  destroy?(): void;
}

/** The counters that Node's own socket time-outs also use. */
interface Handle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

/** The number of bytes that Node buffers for a client before it signals back-pressure, at least. */
const BUFFER = 16_384;

/** Tracks how a client reads the response to one request. */
export class Answer {
  /** True if the response has had to wait for its client. */
  waited = false;
  private readonly listeners: (() => void)[] = [];
  private sent = 0;
  private drains = 0;

  constructor(private readonly response: NodeAnswer) {
    response.once('prefinish', () => {
      for (const listener of this.listeners) listener();
    });
    response.on?.('drain', () => {
      this.waited = true;
      this.drains++;
    });
  }

  /** True if the whole response has been handed to Node. */
  get isComplete(): boolean {
    return this.response.writableEnded === true;
  }

  /** True if the response can't continue until the client has read more. */
  get isBlocked(): boolean {
    const { writableNeedDrain, stream } = this.response;
    return !this.isComplete && (writableNeedDrain === true || stream?.writableNeedDrain === true);
  }

  /** Calls back when the whole response has been handed to Node, if it reports that. */
  onComplete(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** The number of bytes that the client has read since the last call; a lower bound if only buffer sizes are known. */
  taken(): number {
    const { drains, sent } = this;
    const { _handle: handle }: { readonly _handle?: Handle | null } = this.response.socket ?? {};
    const { bytesWritten, writeQueueSize } = handle ?? {};
    this.drains = 0;
    if (bytesWritten === undefined || writeQueueSize === undefined) return drains * BUFFER;
    this.sent = bytesWritten - writeQueueSize;
    return this.sent - sent;
  }

  /** Closes the connection, or for HTTP/2 the stream. */
  cut(): void {
    const { stream } = this.response;
    if (stream?.destroy === undefined) this.response.destroy?.();
    else stream.destroy();
  }
}

const answers = new WeakMap<ClosableResponse, Answer>();

/** Returns the `Answer` of a response. Calls with the same response share it. */
export function answerOf(response: ClosableResponse): Answer {
  return getOrMake(answers, response, () => new Answer(response));
}
