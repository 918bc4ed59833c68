import type { ListEntry, ListName } from '../../config/list-entry.js';
import { configError } from '../../../engine/errors/errors.js';
import { keyMessages } from '../../../engine/errors/messages/calls.js';
import { refuseImpossibleKeys } from '../../rules/possible-keys.js';
import type { LiveOverrides } from '../live-overrides.js';
import { type OverrideStore, WITHOUT_QUOTA } from '../override-store.js';
import type { ListedEntry, ListPage } from './list.js';
import { entryOf, listedEntry } from './listed.js';
import { readEntry, readListOptions, readListPage } from './list-options.js';
import { ALL_LIMITS, type Lists } from './lists.js';

/** The other members of a list change. */
const OF_LIST = { kind: 'list', ...WITHOUT_QUOTA } as const;

/** Adds and removes list entries at run time, and returns them. */
export class ListChanges {
  constructor(
    private readonly live: LiveOverrides,
    private readonly lists: Lists,
    private readonly store: OverrideStore,
    /** Reads the changes of other instances, if possible. */
    private readonly refresh: () => Promise<unknown>,
  ) {}

  /** Throws for configured entries that refer to unknown limits, or to keys that no limit can have. */
  checkConfigured(): void {
    for (const { limit, location, listed } of this.lists.configured) {
      if (limit !== ALL_LIMITS) this.live.of(limit, location);
      this.refuseImpossible(entryOf(listed.key), limit === ALL_LIMITS ? undefined : limit, location);
    }
  }

  async put(list: ListName, entry: ListEntry, options: unknown): Promise<number | undefined> {
    const location = `LimiterService.${list}`;
    const key = readEntry(entry, location);
    const { limit, ends, ...cause } = readListOptions(options, location);
    this.refuseImpossible(entry, limit, location);
    const item = { ...OF_LIST, limit: this.limit(limit, location), key, value: JSON.stringify(list), ends };
    return this.store.write({ operation: 'set', items: [item], ...cause });
  }

  async end(entry: ListEntry, options: unknown): Promise<number | undefined> {
    const location = 'LimiterService.unlist';
    const key = readEntry(entry, location);
    const { limit, ends, ...cause } = readListOptions(options, location, []);
    const item = { ...OF_LIST, limit: this.limit(limit, location), key, value: 'null', ends };
    return this.store.write({ operation: 'clear', items: [item], ...cause });
  }

  async page(options: unknown): Promise<ListPage> {
    const location = 'LimiterService.listEntries';
    const { limit, list, last, count, ip, key } = readListPage(options, location);
    this.limit(limit, location);
    await this.refresh();
    if (ip !== undefined || key !== undefined) {
      const entry = this.lists.find(limit, key, ip);
      const isWanted = entry !== undefined && (list === undefined || entry.list === list);
      return { entries: isWanted ? [entry] : [], next: undefined };
    }
    const entries: ListedEntry[] = [];
    let next: string | undefined;
    for (const { limit: name, listed } of this.lists.after(limit, list, last)) {
      if (entries.length === count) return { entries, next };
      entries.push(listedEntry(name, listed));
      next = `${name}\n${listed.key}`;
    }
    return { entries, next: undefined };
  }

  private refuseImpossible(entry: ListEntry, limit: string | undefined, location: string): void {
    const option = entry.identity === undefined ? 'pattern' : 'identity';
    const text = entry.identity ?? entry.pattern;
    if (text === undefined) return;
    if (limit !== undefined) {
      return refuseImpossibleKeys(this.live.of(limit, location).limit.rule, text, location, option);
    }
    const expected = this.live.problemOfIdentity(text);
    if (expected !== undefined)
      throw configError('SLUICE_INVALID_KEY', keyMessages.secretOption(location, option, expected));
  }

  private limit(name: string | undefined, location: string): string {
    if (name === undefined) return ALL_LIMITS;
    this.live.of(name, location);
    return name;
  }
}
