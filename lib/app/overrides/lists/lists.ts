import type { ListName } from '../../config/list-entry.js';
import type { PolicyListEntry } from '../../config/policy.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { ownIdentity } from '../../../engine/limits/hierarchy.js';
import { type ClientAddress, RecentAddresses } from './network.js';
import type { ListedEntry } from './list.js';
import type { ConfiguredEntry } from './list-options.js';
import { ListScope, stricter } from './list-scope.js';
import { type Listed, listedEntry } from './listed.js';
import { getOrMake } from '../../../engine/util/objects.js';

/** The name of the scope for all limits. */
export const ALL_LIMITS = '';

/** The namespace of the module's limits, and the prefix of the namespaces of limits with a counter per route. */
const OF_MODULE = /^@module(?: |$)/;

/** The part of the lists that checks need. */
export type ListVerdicts = Pick<Lists, 'isEmpty' | 'whenUsed' | 'verdict'>;

/** All current lists in this process. */
export class Lists {
  /** True if all lists are empty. */
  isEmpty = true;
  /** True if any entry matches addresses. */
  hasNetworks = false;
  private readonly all: ListScope;
  /** By limit name, including limits that only other apps have. */
  private readonly byLimit = new Map<string, ListScope>();
  private readonly addresses = new RecentAddresses();
  private readonly whenNotEmpty: (() => void)[] = [];
  private readonly listeners: (() => void)[] = [];

  /**
   * @param configured the entries of the module's options
   * @param isOpen true if lists neither deny nor exempt anybody
   */
  constructor(
    readonly configured: readonly ConfiguredEntry[] = [],
    private readonly isOpen = false,
  ) {
    this.all = this.scope(ALL_LIMITS);
    for (const { limit } of configured) this.scope(limit);
    this.commit();
  }

  get scopes(): Iterable<ListScope> {
    return this.byLimit.values();
  }

  /** The lists of a limit. */
  scope(limit: string): ListScope {
    return getOrMake(this.byLimit, limit, () => {
      const own = this.configured.filter((each) => each.limit === limit);
      return new ListScope(limit, new Map(own.map(({ listed }) => [listed.key, listed])));
    });
  }

  /** Replaces the entries of the policy. */
  takePolicy(entries: readonly PolicyListEntry[]): void {
    const byLimit = new Map<string, Map<string, Listed>>();
    for (const { limit, key, list, reason, place } of entries) {
      const ofLimit = getOrMake(byLimit, limit, () => new Map<string, Listed>());
      ofLimit.set(key, { key, list, record: undefined, reason, policy: place });
      this.scope(limit);
    }
    for (const [limit, scope] of this.byLimit) scope.takePolicy(byLimit.get(limit) ?? new Map<string, Listed>());
    this.commit();
  }

  /** Applies the current entries. */
  commit(): void {
    const scopes = this.isOpen ? [] : [...this.byLimit.values()];
    this.isEmpty = scopes.every(({ size }) => size === 0);
    this.hasNetworks = scopes.some(({ hasNetworks }) => hasNetworks);
    if (!this.isEmpty) for (const begin of this.whenNotEmpty.splice(0)) begin();
    for (const listener of this.listeners) listener();
  }

  /** Registers a listener that is called when entries change. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Calls back once any list has an entry; immediately if one already has. */
  whenUsed(begin: () => void): void {
    if (this.isEmpty) this.whenNotEmpty.push(begin);
    else begin();
  }

  /** Returns the list that decides for a key or the client's address at a limit; `undefined` if none does. */
  verdict(limit: CompiledLimit, counted: string, address: string | undefined): ListName | undefined {
    const client = this.client(address);
    const identity = ownIdentity({ limit, identity: counted });
    return this.decider(limit, identity, client, this.all.find(identity, client))?.list;
  }

  /** The public form of the entry behind a verdict. */
  deciding(limit: CompiledLimit, counted: string, address: string | undefined): ListedEntry | undefined {
    if (this.isEmpty) return undefined;
    const client = this.client(address);
    const identity = ownIdentity({ limit, identity: counted });
    const ofAll = this.all.find(identity, client);
    const listed = this.decider(limit, identity, client, ofAll);
    return listed && listedEntry(listed === ofAll ? ALL_LIMITS : limit.name, listed);
  }

  /** True if some entry may deny addresses at all limits. */
  get mayRefuseAddresses(): boolean {
    return this.hasNetworks && this.all.hasNetworks;
  }

  /** Returns true if an address is denied at all limits. */
  refuses(address: string): boolean {
    return this.all.find(undefined, this.addresses.of(address))?.list === 'deny';
  }

  /** The entry that denies an address at all limits. */
  refusing(address: string): ListedEntry | undefined {
    if (!this.mayRefuseAddresses) return undefined;
    const listed = this.all.find(undefined, this.addresses.of(address));
    return listed?.list === 'deny' ? listedEntry(ALL_LIMITS, listed) : undefined;
  }

  /** The public form of the entry that decides. */
  find(limit: string | undefined, identity: string | undefined, ip: string | undefined): ListedEntry | undefined {
    const client = ip === undefined ? undefined : this.addresses.of(ip);
    const name = limit ?? ALL_LIMITS;
    const own = this.byLimit.get(name)?.find(identity, client);
    // Reports the limit's own entry, unless the one for all limits is stricter.
    const listed = stricter(own, this.all.find(identity, client));
    return listed && listedEntry(listed === own ? name : ALL_LIMITS, listed);
  }

  /** The entries after the last one, ordered by limit, starting with those for all limits. */
  *after(limit: string | undefined, list: ListName | undefined, last?: { limit: string; key: string }) {
    const names = limit === undefined ? [...this.byLimit.keys()].sort() : [limit];
    for (const name of names) {
      if (last !== undefined && name < last.limit) continue;
      const from = last?.limit === name ? last.key : undefined;
      for (const listed of this.byLimit.get(name)?.after(from, list) ?? []) yield { limit: name, listed };
    }
  }

  private client(address: string | undefined): ClientAddress | undefined {
    return address === undefined || !this.hasNetworks ? undefined : this.addresses.of(address);
  }

  /** The entry that decides: an entry for all limits, or the limit's own. */
  private decider(
    limit: CompiledLimit,
    identity: string,
    client: ClientAddress | undefined,
    ofAll: Listed | undefined,
  ): Listed | undefined {
    if (ofAll?.list === 'deny') return ofAll;
    return this.scopeOf(limit)?.find(identity, client) ?? ofAll;
  }

  /** The lists of a limit that code and the module's options refer to by name. A route may have a different limit with that name. */
  private scopeOf({ name, namespace }: CompiledLimit): ListScope | undefined {
    const scope = this.byLimit.get(name);
    return scope !== undefined && (namespace === '' || OF_MODULE.test(namespace)) ? scope : undefined;
  }
}
