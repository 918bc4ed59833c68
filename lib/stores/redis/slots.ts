import calculateSlot from 'cluster-key-slot';
import type { Cluster } from 'ioredis';
import type { RateLimitStoreError } from '../../errors/errors.js';
import type { Counter } from '../../limits/counter.js';
import { hashTagOf, keyOf } from './keys.js';

/** The slots of a Cluster, and which node has which, as the client knows it. */
export class Slots {
  constructor(
    private readonly client: Cluster,
    private readonly prefix: string,
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

  /** Whether a node is a master of any slot. */
  hasNode(node: string): boolean {
    const { slots } = this.client;
    return node === '' ? slots.length === 0 : slots.some(([master]) => master === node);
  }

  /** A node that says nothing does not say either that another one has its slots by now. */
  blame(node: string, failure: RateLimitStoreError): void {
    failure.node = node;
    this.client.refreshSlotsCache();
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
