import calculateSlot from 'cluster-key-slot';
import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { isCluster, rediscoverNodes } from '../../redis/client.js';
import type { Connection, ServerCluster } from '../../redis/connection.js';
import { hashTagOf, keyOf } from './keys.js';
import type { ScriptCalls } from './script-calls.js';

/** The slots of a Cluster and their nodes, as the client knows them. */
export class Slots {
  constructor(
    private readonly client: ServerCluster,
    private readonly prefix: string,
    private readonly calls: Pick<ScriptCalls, 'whyMoving'>,
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
    const reason = this.calls.whyMoving(slot);
    const error =
      reason === undefined
        ? failure
        : new RateLimitStoreError(messages.slotMoving(slot, reason, failure.message), { cause: failure });
    error.node = node;
    if (reason !== undefined) error.slot = slot;
    return error;
  }
}

/** The slots of a Cluster; `undefined` for a single server. */
export function slotsOf(client: Connection, prefix: string, calls: ScriptCalls): Slots | undefined {
  return isCluster(client) ? new Slots(client, prefix, calls) : undefined;
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

/** The slots of a Cluster. */
export const SLOTS = 16_384;

const CHARACTERS = '0123456789abcdefghijklmnopqrstuvwxyz'.split('');

let tags: readonly string[] | undefined;

/** A hash tag for each slot, by slot: keys with the tag are in that slot. Computed once per process, on first use. */
export function slotTags(): readonly string[] {
  return (tags ??= findTags());
}

/** The tag for the slot of keys with another tag. */
export function tagBeside(tag: string): string {
  return slotTags()[calculateSlot(tag)]!;
}

/**
 * Tags that end in one more character: the hash is continued from there, instead of being computed from the start for each tag.
 */
function findTags(): readonly string[] {
  const found: string[] = Array.from({ length: SLOTS });
  let left = SLOTS;
  let shorter: { readonly tag: string; readonly crc: number }[] = [{ tag: '', crc: 0 }];
  while (left > 0) {
    const longer: typeof shorter = [];
    for (const { tag, crc } of shorter) {
      for (const character of CHARACTERS) {
        const next = { tag: tag + character, crc: crc16(crc, character.charCodeAt(0)) };
        longer.push(next);
        const slot = next.crc % SLOTS;
        if (found[slot] !== undefined) continue;
        found[slot] = next.tag;
        if (--left === 0) return found;
      }
    }
    shorter = longer;
  }
  return found;
}

/** One step of a Cluster's hash: CRC16, polynomial 0x1021. */
function crc16(crc: number, byte: number): number {
  crc ^= byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  return crc;
}
