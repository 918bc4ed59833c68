import { isIP } from 'node:net';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { ListEntry, ListName } from '../../app/config/list-entry.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import { FORMS, readForm } from '../../app/overrides/lists/list-options.js';
import type { ListedEntry } from '../../app/overrides/lists/list.js';
import type { Overrides } from '../../app/overrides/overrides.js';
import type { Changed, ListItem, ListItems } from '../api.js';
import type { Fields } from '../fields.js';
import { entryId, type ShownNames } from '../shown-names.js';
import { type Cause, problemOf, tried, unreadProblem } from '../problem.js';
import type { Ends } from './rate-changes.js';

const PAGE = 200;
/** The number of entries to read per call. */
const READ = 1000;

/** An entry, and the limit that it applies to. */
interface Listing {
  readonly entry: ListEntry;
  readonly limit: string | undefined;
}

/** Shows and changes the entries of lists. */
export class ListChanges {
  constructor(
    private readonly service: LimiterService,
    private readonly overrides: Overrides,
    private readonly names: ShownNames,
  ) {}

  /** A page of all entries. Its cursor is a number, which reveals no identity. */
  async page(cursor: number): Promise<ListItems> {
    const failure = await this.overrides.readIfPossible();
    const entries: ListItem[] = [];
    let next: string | undefined;
    let at = 0;
    for await (const entry of allEntries(this.service)) {
      if (at++ < cursor) continue;
      if (entries.length === PAGE) {
        next = String(cursor + PAGE);
        break;
      }
      entries.push(this.names.item(entry));
    }
    return { entries, next, problem: failure && unreadProblem(failure) };
  }

  /** Reads the entry of a request: an identity, a prefix of identities followed by a star, an address or a network. */
  listing(fields: Fields): () => Listing {
    const identity = fields.optional('identity', () => fields.identity());
    if (identity !== undefined && isNetwork(identity)) fields.refuse('identity', consoleMessages.networkAsIdentity());
    const ip = fields.optional('ip', (field) => fields.text(field, 'an address or a network'));
    const limit = fields.optional('limit', (field) => fields.text(field, 'the name of a limit'));
    const isOne = (identity === undefined) !== (ip === undefined);
    if (!isOne && !fields.has('id')) fields.refuse('identity', consoleMessages.oneOfIdentityAndIp());
    return () => ({ entry: entryOf(identity, ip), limit });
  }

  /** Returns true if the change would replace or remove an entry without an end. An `id` refers to an entry on a page. */
  async isEndless(which: Listing | string): Promise<boolean> {
    await tried('id', () => this.overrides.readIfPossible());
    for await (const listed of allEntries(this.service)) {
      if (listed.source !== 'changed' || listed.expiresAt !== undefined) continue;
      if (typeof which === 'string' ? entryId(listed) === which : isSame(listed, which)) return true;
    }
    return false;
  }

  async put(list: ListName, { entry, limit }: Listing, ends: Ends, cause: Cause): Promise<Changed> {
    const options = { ...cause, ...ends, ...(limit !== undefined && { limit }) };
    const version = await tried('limit', () => this.overrides.lists.put(list, entry, options));
    return { changed: true, version };
  }

  async end({ entry, limit }: Listing, cause: Cause): Promise<Changed> {
    const options = { ...cause, ...(limit !== undefined && { limit }) };
    const version = await tried('limit', () => this.overrides.lists.end(entry, options));
    return { changed: version !== undefined, version };
  }

  async endById(id: string, cause: Cause): Promise<Changed> {
    const failure = await this.overrides.readIfPossible();
    if (failure !== undefined) throw problemOf(failure, 'id');
    for await (const listed of allEntries(this.service)) {
      if (entryId(listed) !== id) continue;
      return this.end({ entry: listed.entry, limit: listed.limit }, cause);
    }
    return { changed: false };
  }
}

/** All entries of all lists that are known here. */
export async function* allEntries(service: LimiterService): AsyncIterable<ListedEntry> {
  let cursor: string | undefined;
  do {
    const page = await service.listEntries({ count: READ, ...(cursor !== undefined && { cursor }) });
    yield* page.entries;
    cursor = page.next;
  } while (cursor !== undefined);
}

/** Returns true if an identity looks like a network. As an identity, it would match nothing. */
function isNetwork(text: string): boolean {
  const [address = '', length] = text.split('/');
  return length !== undefined && isIP(address) !== 0;
}

/** Returns true if a request names this entry, in any notation. */
function isSame(listed: ListedEntry, { entry, limit }: Listing): boolean {
  if (listed.limit !== limit) return false;
  return FORMS.some((form) => {
    const [one, other] = [readForm(form, listed.entry[form]), readForm(form, entry[form])];
    return 'key' in one && 'key' in other && one.key === other.key;
  });
}

function entryOf(identity: string | undefined, ip: string | undefined): ListEntry {
  if (identity === undefined) return { ip: ip! };
  return identity.endsWith('*') ? { pattern: identity } : { identity };
}
