import { withDeadline } from '../../redis/deadline.js';
import type { Connection } from '../../redis/connection.js';
import { Script } from '../../redis/script.js';
import { asStoreError, serverOf } from '../../redis/store-error.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { LACKS_A_RIGHT } from '../../../engine/errors/lacks-a-right.js';
import { moduleLogger, OnceLogger } from '../../../engine/errors/logger.js';
import { reasonOf } from '../../../engine/util/reason-of.js';
import { KEPT_FOR_MS } from './home-record.js';
import { worldMessages } from './messages.js';
import { INDEX_SCRIPT } from './index-script.generated.js';
import { readTexts } from './texts.js';

/** How many counters the index of a region has at most. */
const MOST = 100_000;
/** A counter that nobody has noted for so long counts as left, and an instance that has noted none as gone, in milliseconds. */
export const LEFT_AFTER_MS = 30_000;
/** How long the counters of an instance that ends still count as looked after: others that use them note them by then. */
export const GRACE_MS = 15_000;

/** A counter that nobody looks after. */
export interface LeftCounter {
  readonly address: string;
  /** When somebody did last, as the server says it. */
  readonly since: string;
}

/** What identifies a counter among those of a region, as text. */
export function addressOf({ limit, identity }: Counter): string {
  return JSON.stringify([limit.id, identity]);
}

/** Reads such a text: the limit's `id`, and the identity; `undefined` if it is none. */
export function readAddress(address: string): readonly [id: string, identity: string] | undefined {
  return readTexts(address, 2) as [string, string] | undefined;
}

/**
 * The counters of a region that may hold units, on the region's server, so that the units of instances that have ended come back. It is
 * no part of the protocol: what is missing in it only stays charged for longer.
 */
export class CounterIndex {
  private readonly log = new OnceLogger(moduleLogger);
  private readonly script: Script;
  private readonly keys: readonly string[];

  /**
   * @param key what its keys begin with: a hash tag is in it
   * @param instance identifies this instance
   */
  constructor(
    private readonly client: Connection,
    key: string,
    private readonly instance: string,
    private readonly timeoutMs: number,
  ) {
    this.script = new Script(client, INDEX_SCRIPT);
    this.keys = [`${key}:counters`, `${key}:instances`];
  }

  /** Says that this instance looks after counters. */
  async note(addresses: readonly string[]): Promise<void> {
    await this.run('note', this.instance, MOST, KEPT_FOR_MS, ...addresses);
  }

  /** Counters that nobody has looked after for so long, some of them at a time, those first that were left first. */
  async left(ageMs: number, most: number): Promise<LeftCounter[]> {
    const reply = (await this.run('left', ageMs, most)) as unknown[];
    return Array.from({ length: reply.length / 2 }, (_, index) => ({
      address: String(reply[2 * index]),
      since: String(reply[2 * index + 1]),
    }));
  }

  /** Whether units of a counter may be here. */
  async has(address: string): Promise<boolean> {
    return Number(await this.run('has', address)) === 1;
  }

  /** Forgets counters that hold nothing, unless somebody has looked after them since. */
  async drop(left: readonly LeftCounter[]): Promise<void> {
    await this.run('drop', ...left.flatMap(({ address, since }) => [address, since]));
  }

  /** Says that this instance ends, and what it looked after. Returns how many others are there. */
  async leave(addresses: readonly string[]): Promise<number> {
    const terms = [MOST, KEPT_FOR_MS, LEFT_AFTER_MS, LEFT_AFTER_MS - GRACE_MS];
    return Number(await this.run('leave', this.instance, ...terms, ...addresses));
  }

  private async run(...args: (string | number)[]): Promise<unknown> {
    try {
      return await withDeadline(this.script.run(this.keys, args.map(String), this.timeoutMs), this.timeoutMs);
    } catch (error) {
      const reason = reasonOf(error);
      if (LACKS_A_RIGHT.test(reason)) this.log.warn(worldMessages.noIndex(reason));
      throw asStoreError(error, serverOf(this.client));
    }
  }
}
