import { withDeadline } from '../../redis/deadline.js';
import type { Connection } from '../../redis/connection.js';
import { Script } from '../../redis/script.js';
import { asStoreError, serverOf } from '../../redis/store-error.js';
import { readWholeNumber } from '../../redis/reply-error.js';
import { HOME_SCRIPT } from './home-script.generated.js';

/** What a region knows of its home: which history of its server, its number, and how many of the region's calls were answered. */
export interface KnownHome {
  readonly history: number;
  readonly epoch: number;
  readonly calls: number;
}

/** What a call says of the region that makes it: which history its own server has, and what is known there of the home. */
export interface Caller extends KnownHome {
  readonly server: number;
}

/** How long a region remembers its home: as long as the home remembers its regions. */
export const KEPT_FOR_MS = 35 * 86_400_000;

/** The record of the home on the server of a region, which all of its instances share. */
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

  /** Notes what an answer says. Returns whether it is of the newest server. */
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
