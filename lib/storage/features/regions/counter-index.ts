import { withDeadline } from '../../redis/deadline.js';
import type { Connection } from '../../redis/connection.js';
import { Script } from '../../redis/script.js';
import { asStoreError, pairsOf, serverOf } from '../../redis/errors.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { LACKS_A_RIGHT, reasonOf } from '../../../engine/errors/reasons.js';
import { moduleLogger, OnceLogger } from '../../../engine/errors/logger.js';
import { KEPT_FOR_MS } from './home-record.js';
import { worldMessages } from './messages.js';
import { INDEX_SCRIPT } from './index-script.generated.js';

/** Maximum number of counters in the index of a region. */
const MOST = 100_000;
/**
 * In milliseconds. A counter that nobody has recorded for this long counts as abandoned, and an instance that has recorded none as gone.
 */
export const LEFT_AFTER_MS = 30_000;
/** How long the counters of an ending instance still count as maintained. Other instances that use them record them by then. */
export const GRACE_MS = 15_000;

/** A counter that no instance maintains. */
export interface LeftCounter {
  readonly address: string;
  /** When an instance last maintained it, on the server's clock. */
  readonly since: string;
}

/** The address of a counter among those of a region, as text. */
export function addressOf({ limit, identity }: Counter): string {
  return JSON.stringify([limit.id, identity]);
}

/** Reads such an address: the limit's `id` and the identity; `undefined` if it has another form. */
export function readAddress(address: string): readonly [id: string, identity: string] | undefined {
  return readTexts(address, 2) as [string, string] | undefined;
}

/**
 * The counters of a region that may hold units, stored on the region's server, so that units of ended instances are returned. The index
 * isn't part of the protocol: units missing in it only stay charged for longer.
 */
export class CounterIndex {
  private readonly log = new OnceLogger(moduleLogger);
  private readonly script: Script;
  private readonly keys: readonly string[];

  /**
   * @param key the prefix of its keys, including a hash tag
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

  /** Records that this instance maintains counters. */
  async note(addresses: readonly string[]): Promise<void> {
    await this.run('note', this.instance, MOST, KEPT_FOR_MS, ...addresses);
  }

  /** Counters that nobody has maintained for `ageMs`, a limited number at a time, the longest abandoned first. */
  async left(ageMs: number, most: number): Promise<LeftCounter[]> {
    const reply = await this.run('left', ageMs, most);
    return pairsOf(reply).map(([address, since]) => ({ address, since }));
  }

  /** Returns true if the region may hold units of a counter. */
  async has(address: string): Promise<boolean> {
    return Number(await this.run('has', address)) === 1;
  }

  /** Removes counters without units from the index, unless an instance has maintained them since. */
  async drop(left: readonly LeftCounter[]): Promise<void> {
    await this.run('drop', ...left.flatMap(({ address, since }) => [address, since]));
  }

  /** Records that this instance ends, and the counters that it maintained. Returns the number of other instances. */
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

/** Reads a JSON list of `count` texts; `undefined` if it has another form. */
export function readTexts(json: string, count: number): readonly string[] | undefined {
  let read: unknown;
  try {
    read = JSON.parse(json);
  } catch {
    return undefined;
  }
  const isList = Array.isArray(read) && read.length === count && read.every((part) => typeof part === 'string');
  return isList ? (read as string[]) : undefined;
}
