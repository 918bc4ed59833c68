import { withDeadline } from '../../redis/deadline.js';
import type { Connection } from '../../redis/connection.js';
import { Script } from '../../redis/script.js';
import { asStoreError, readWholeNumber, serverOf } from '../../redis/errors.js';
import { HOME_SCRIPT } from './home-script.generated.js';

/** The home as a region knows it: the history of its server, its number, and the number of calls of the region that were answered. */
export interface KnownHome {
  readonly history: number;
  readonly epoch: number;
  readonly calls: number;
}

/** The region that makes a call: the history of its own server, and its knowledge of the home. */
export interface Caller extends KnownHome {
  readonly server: number;
}

/** How long a region remembers its home: as long as the home remembers its regions. */
export const KEPT_FOR_MS = 35 * 86_400_000;

/** The record of the home on the server of a region. All instances of the region share it. */
export class HomeRecord {
  private readonly script: Script;

  constructor(
    private readonly client: Connection,
    private readonly key: string,
    private readonly timeoutMs: number,
  ) {
    this.script = new Script(client, HOME_SCRIPT);
  }

  async read(): Promise<Caller & { readonly ageMs: number }> {
    const [, history, epoch, calls, ageMs, server] = await this.run();
    return { history: history!, epoch: epoch!, calls: calls!, ageMs: ageMs! < 0 ? Infinity : ageMs!, server: server! };
  }

  /** Records the home of an answer. Returns true if the answer is from the newest server. */
  async note({ history, epoch, calls }: KnownHome): Promise<boolean> {
    const [isCurrent] = await this.run(history, epoch, calls, KEPT_FOR_MS);
    return isCurrent === 1;
  }

  private async run(...args: number[]): Promise<number[]> {
    try {
      const call = this.script.run([this.key], args.map(String), this.timeoutMs);
      const reply = (await withDeadline(call, this.timeoutMs)) as unknown[];
      return reply.map((value) => readWholeNumber(value) ?? Number(value));
    } catch (error) {
      throw asStoreError(error, serverOf(this.client));
    }
  }
}
