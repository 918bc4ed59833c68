/** What is used of a socket. */
interface Stream {
  readonly bytesRead: number;
  destroy(error: Error): void;
}

/** What a connection has said, as far as calls were not answered in time. */
class Silence {
  private stream: Stream | undefined;
  private bytesRead = 0;
  private since = 0;

  constructor(
    private readonly client: { readonly stream?: Stream },
    /** In milliseconds. */
    readonly longestMs: number,
  ) {}

  note(): void {
    const { stream } = this.client;
    if (stream === undefined) return;
    const now = performance.now();
    if (stream !== this.stream || stream.bytesRead !== this.bytesRead) {
      this.stream = stream;
      this.bytesRead = stream.bytesRead;
      this.since = now;
    } else if (now - this.since >= this.longestMs) {
      this.stream = undefined;
      stream.destroy(new Error(`the server said nothing for ${this.longestMs} ms`));
    }
  }
}

/** The connections that were made here. */
const silences = new WeakMap<object, Silence>();

/**
 * Has a connection replaced once it is silent for so long: a frozen server, or a firewall that forgot the connection, never ends it.
 * It is looked at only when a call is not answered in time, which costs the others nothing. ioredis's `socketTimeout` takes a timer
 * for each.
 */
export function limitSilence(client: object, longestMs: number): void {
  silences.set(client, new Silence(client, longestMs));
}

/** A call of a connection was not answered in time. */
export function noteSilence(client: object): void {
  silences.get(client)?.note();
}

/** How long a connection may be silent, in milliseconds; `undefined` if that is for the app to say. */
export function longestSilenceOf(client: object): number | undefined {
  return silences.get(client)?.longestMs;
}
