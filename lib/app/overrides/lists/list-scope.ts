import type { ListName } from '../../config/list-entry.js';
import { logger } from '../../../engine/errors/logger.js';
import { listMessages } from '../../../engine/errors/messages/rates.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { firstAfter, KeyTable } from '../key-table.js';
import { isOverrideKey, type OverrideKind } from '../override-address.js';
import { isDamaged, isInForce, type OverrideHolder, type StoredRecord } from '../override-record.js';
import { type ClientAddress, type Network, PrefixTable, readNetwork } from './network.js';
import { identityOf, type Listed, listedBy, networkOf } from './listed.js';

/** The maximum number of records to log per limit. */
const MOST_LOGGED = 100;

/** Cached if there is no entry. */
const NOBODY = Symbol('nobody');

/** The lists of one limit, or those of all limits. */
export class ListScope implements OverrideHolder {
  private readonly members = new Map<string, Listed>();
  private readonly identities = new KeyTable<Listed>();
  private readonly v4 = new PrefixTable<Listed>();
  private readonly v6 = new PrefixTable<Listed>();
  private policy: ReadonlyMap<string, Listed> = new Map();
  private sorted: string[] | undefined;
  private networks = 0;
  /** The entries found for addresses since the last change of a network. */
  private found: WeakMap<ClientAddress, Listed | typeof NOBODY> | undefined;
  private readonly logged = new Map<string, string>();

  /**
   * @param limit the limit's name; empty for all limits
   * @param configured the entries of the module's options
   */
  constructor(
    readonly limit: string,
    private readonly configured: ReadonlyMap<string, Listed>,
  ) {
    this.clear();
  }

  get size(): number {
    return this.members.size;
  }

  /** True if some entries match addresses. */
  get hasNetworks(): boolean {
    return this.networks > 0;
  }

  /** The entry that decides for a key and an address, if any. */
  find(identity: string | undefined, address: ClientAddress | undefined): Listed | undefined {
    const byIdentity = identity === undefined ? undefined : this.identities.find(identity);
    if (this.networks === 0 || address === undefined) return byIdentity;
    return stricter(byIdentity, this.findNetwork(address));
  }

  put(_kind: OverrideKind, key: string, stored: StoredRecord | undefined, now: number): number | undefined {
    if (stored !== undefined && isDamaged(stored)) this.warn(key, stored.damage);
    else if (stored !== undefined && stored.list === undefined)
      this.warn(key, messages.notARecord(JSON.stringify(stored)));
    else if (stored !== undefined && isInForce(stored, now)) {
      this.place(key, listedBy(key, stored));
      return stored.expiresAt ?? undefined;
    }
    this.place(key, this.written(key));
    return undefined;
  }

  expire(_kind: OverrideKind, key: string, now: number): void {
    const record = this.members.get(key)?.record;
    if (record !== undefined && !isInForce(record, now)) this.place(key, this.written(key));
  }

  clear(): void {
    for (const key of this.members.keys()) this.place(key, undefined);
    for (const key of [...this.configured.keys(), ...this.policy.keys()]) this.place(key, this.written(key));
  }

  /** Replaces the entries of the policy. Records override them. */
  takePolicy(policy: ReadonlyMap<string, Listed>): void {
    const keys = new Set([...this.policy.keys(), ...policy.keys()]);
    this.policy = policy;
    for (const key of keys) {
      if (this.members.get(key)?.record === undefined) this.place(key, this.written(key));
    }
  }

  /** Entries take effect as soon as they are put. */
  commit(): void {}

  *expiries(): Iterable<[at: number, kind: OverrideKind, key: string]> {
    for (const { key, record } of this.members.values()) {
      if (typeof record?.expiresAt === 'number') yield [record.expiresAt, 'list', key];
    }
  }

  /** The entries after a key, in the order of their keys. */
  *after(key: string | undefined, list: ListName | undefined): Iterable<Listed> {
    const keys = (this.sorted ??= [...this.members.keys()].sort());
    for (let index = key === undefined ? 0 : firstAfter(keys, key); index < keys.length; index++) {
      const listed = this.members.get(keys[index]!)!;
      if (list === undefined || listed.list === list) yield listed;
    }
  }

  /** The entry for a key regardless of records: the policy overrides the options. */
  private written(key: string): Listed | undefined {
    return this.policy.get(key) ?? this.configured.get(key);
  }

  /** Adds an entry, or removes it. */
  private place(key: string, listed: Listed | undefined): void {
    const known = this.members.has(key);
    if (!known && listed === undefined) return;
    const text = networkOf(key);
    if (text !== undefined) {
      const network = readNetwork(text);
      // Another release may write networks in a different form.
      if (typeof network === 'string' || network.text !== text) return this.warn(key, listMessages.networkExpected());
      this.placeNetwork(network, listed);
      this.networks += Number(listed !== undefined) - Number(known);
    } else if (!this.placeIdentity(identityOf(key), listed))
      return this.warn(key, listMessages.listedIdentityExpected());
    if (listed === undefined) this.members.delete(key);
    else this.members.set(key, listed);
    if (known !== (listed !== undefined)) this.sorted = undefined;
  }

  private placeNetwork({ parts, length }: Network, listed: Listed | undefined): void {
    this.found = undefined;
    const table = parts.length === 2 ? this.v4 : this.v6;
    if (listed === undefined) table.delete(parts, length);
    else table.set(parts, length, listed);
  }

  private placeIdentity(identity: string | undefined, listed: Listed | undefined): boolean {
    if (!isOverrideKey(identity)) return false;
    if (listed === undefined) this.identities.delete(identity);
    else this.identities.set(identity, listed);
    return true;
  }

  private findNetwork(address: ClientAddress): Listed | undefined {
    const known = (this.found ??= new WeakMap());
    let found = known.get(address);
    if (found === undefined) {
      const { v4, v6 } = address;
      found = stricter(v4 && this.v4.find(v4), v6 && this.v6.find(v6)) ?? NOBODY;
      known.set(address, found);
    }
    return found === NOBODY ? undefined : found;
  }

  private warn(key: string, reason: string): void {
    if (this.logged.get(key) === reason || this.logged.size >= MOST_LOGGED) return;
    this.logged.set(key, reason);
    logger.warn(listMessages.listEntryIgnored(this.limit, key, reason));
  }
}

/** Returns the stricter of two entries: the one that denies, if any. */
export function stricter(one: Listed | undefined, other: Listed | undefined): Listed | undefined {
  return one === undefined || other?.list === 'deny' ? (other ?? one) : one;
}
