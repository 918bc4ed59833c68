import type { ClosableResponse } from './connection.js';

/** What a response of Node says of how its client takes it; that of HTTP/2 says some of it by its stream. */
interface NodeAnswer extends ClosableResponse {
  readonly writableEnded?: boolean;
  readonly writableNeedDrain?: boolean;
  readonly stream?: { readonly writableNeedDrain?: boolean; destroy?(): void };
  readonly socket?: { readonly _handle?: Handle | null } | null;
  once(event: 'prefinish' | 'drain' | 'close', listener: () => void): unknown;
  on?(event: 'drain', listener: () => void): unknown;
  destroy?(): void;
}

/** What Node's own time-outs of sockets look at, too. */
interface Handle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

/** What Node keeps for a client at least before it says that it is too much. */
const BUFFER = 16_384;

/** How a client takes the answer to one request. */
export class Answer {
  /** Whether the answer had to wait for its client. */
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

  /** Whether all of it has been handed to Node. */
  get isComplete(): boolean {
    return this.response.writableEnded === true;
  }

  /** Whether more of it waits until its client has read. */
  get isBlocked(): boolean {
    const { writableNeedDrain, stream } = this.response;
    return !this.isComplete && (writableNeedDrain === true || stream?.writableNeedDrain === true);
  }

  /** Calls back when all of it has been handed to Node, where the response says so. */
  onComplete(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** The bytes that its client has taken since this was last asked; at least that many where only buffers are known. */
  taken(): number {
    const { drains, sent } = this;
    const { _handle: handle }: { readonly _handle?: Handle | null } = this.response.socket ?? {};
    const { bytesWritten, writeQueueSize } = handle ?? {};
    this.drains = 0;
    if (bytesWritten === undefined || writeQueueSize === undefined) return drains * BUFFER;
    this.sent = bytesWritten - writeQueueSize;
    return this.sent - sent;
  }

  /** Closes the connection, or over HTTP/2 the stream. */
  cut(): void {
    const { stream } = this.response;
    if (stream?.destroy === undefined) this.response.destroy?.();
    else stream.destroy();
  }
}

const answers = new WeakMap<ClosableResponse, Answer>();

/** The answer that goes out as a response: one for all calls that share it. */
export function answerOf(response: ClosableResponse): Answer {
  let answer = answers.get(response);
  if (answer === undefined) answers.set(response, (answer = new Answer(response)));
  return answer;
}
