import type { Stream } from './connection.js';
import { NodeRedisAdapter } from './node-redis/adapter.js';

/** The silence of a connection, based on calls that were not answered in time. */
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

/** The connections created here. */
const silences = new WeakMap<object, Silence>();

/**
 * Replaces a connection that has been silent for too long: a frozen server never ends it, and a firewall that has forgotten it doesn't
 * either. Silence is checked only when a call is not answered in time, so other calls have no overhead. ioredis's `socketTimeout` needs a
 * timer for each command.
 */
export function limitSilence(client: object, longestMs: number): void {
  silences.set(client, new Silence(client, longestMs));
}

/** Records that a call on a connection was not answered in time. */
export function noteSilence(client: object): void {
  if (client instanceof NodeRedisAdapter) client.abandonUnsent();
  else silences.get(client)?.note();
}

/** How long a connection may be silent, in milliseconds; `undefined` if the app decides that. */
export function longestSilenceOf(client: object): number | undefined {
  return silences.get(client)?.longestMs;
}
