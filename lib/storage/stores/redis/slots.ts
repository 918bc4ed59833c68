import calculateSlot from 'cluster-key-slot';
import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { rediscoverNodes } from '../../redis/client.js';
import type { ServerCluster } from '../../redis/connection.js';
import { hashTagOf, keyOf } from './keys.js';

/** The slots of a Cluster and their nodes, as the client knows them. */
export class Slots {
  constructor(
    private readonly client: ServerCluster,
    private readonly prefix: string,
    /** The reason why calls on a slot may have just failed, if it is moving. */
    private readonly whyMoving: (slot: number) => string | undefined,
  ) {}

  of(counter: Counter): number {
    return calculateSlot(this.prefix.includes('{') ? keyOf(this.prefix, counter) : hashTagOf(counter));
  }

  group<C extends Counter>(counters: readonly C[]): C[][] {
    return groupBy(counters, (counter) => this.of(counter));
  }

  /** The master that has a counter's slot. */
  nodeOf(counter: Counter): string {
    return this.client.slots[this.of(counter)]?.[0] ?? '';
  }

  /** Returns true if a node is the master of any slot. */
  hasNode(node: string): boolean {
    const { slots } = this.client;
    return node === '' ? slots.length === 0 : slots.some((nodes) => nodes?.[0] === node);
  }

  /**
   * Attributes a failure to the slot if it is moving, otherwise to the node. A node that doesn't answer can't report that another node has
   * taken over its slots.
   */
  blame(node: string, failure: RateLimitStoreError, counter: Counter): RateLimitStoreError {
    rediscoverNodes(this.client, node);
    const slot = this.of(counter);
    const reason = this.whyMoving(slot);
    const error =
      reason === undefined
        ? failure
        : new RateLimitStoreError(messages.slotMoving(slot, reason, failure.message), { cause: failure });
    error.node = node;
    if (reason !== undefined) error.slot = slot;
    return error;
  }
}

export function groupBy<T>(values: readonly T[], group: (value: T) => number): T[][] {
  const groups = new Map<number, T[]>();
  for (const value of values) {
    const number = group(value);
    const members = groups.get(number);
    if (members === undefined) groups.set(number, [value]);
    else members.push(value);
  }
  return [...groups.values()];
}
