import { isIP } from 'node:net';
import type { ListEntry } from '../app/config/list-entry.js';
import { ipIdentity } from '../app/key-resolvers/ip.js';
import type { ListedEntry } from '../app/overrides/lists/list.js';
import type { Override } from '../app/overrides/override.js';
import { hashOf } from '../storage/telemetry/decision-event.js';
import type { ListItem, OverrideInfo } from './api.js';

const ADDRESS = 'ip:';
/** Represents all clients. */
const GLOBAL = 'global';

/** How identities are displayed: in plain text, or as hashes. Names of groups are always displayed. */
export class ShownNames {
  constructor(readonly isPlain: boolean) {}

  /** The key of an override, or of a change to a counter. */
  key(key: string): string {
    return this.isPlain || key.endsWith('*') || key === GLOBAL ? key : hashOf(key);
  }

  /** The identity, pattern or address of a list entry. */
  entry({ ip, identity, pattern }: ListEntry): string {
    if (pattern !== undefined) return pattern;
    if (identity !== undefined) return this.key(identity);
    return this.isPlain || ip.includes('/') ? ip : hashOf(ADDRESS + ip);
  }

  item(listed: ListedEntry): ListItem {
    const { entry, list, limit, source, expiresAt, by, reason } = listed;
    return {
      id: entryId(listed),
      list,
      kind: entry.ip !== undefined ? 'ip' : entry.pattern !== undefined ? 'pattern' : 'identity',
      entry: this.entry(entry),
      limit: limit ?? null,
      source,
      removable: source === 'changed',
      expiresAt: expiresAt ?? null,
      by,
      reason,
    };
  }

  override({ key, version, expiresAt, by, reason, ...rest }: Override): OverrideInfo {
    const { patch, mode } = rest as Pick<OverrideInfo, 'patch' | 'mode'>;
    const shown = key === undefined ? undefined : this.key(key);
    return { key: shown, version, expiresAt: expiresAt ?? null, by, reason, patch, mode };
  }
}

/** Identifies a list entry without revealing its identity or address. */
export function entryId({ entry, limit }: Pick<ListedEntry, 'entry' | 'limit'>): string {
  return hashOf(JSON.stringify([limit ?? '', entry]));
}

/** The address that an identity is derived from, if any. */
export function addressIn(identity: string): string | undefined {
  if (!identity.startsWith(ADDRESS)) return undefined;
  const address = identity.slice(ADDRESS.length);
  return isIP(address) === 0 ? undefined : address;
}

/** An identity in the form that limits count: an address becomes its network. Identities from the app's functions are unchanged. */
export function countedIdentity(identity: string, key: unknown, ipv6Prefix: number): string {
  const address = typeof key === 'string' ? addressIn(identity) : undefined;
  return address === undefined ? identity : (ipIdentity(address, ipv6Prefix) ?? identity);
}

/** The separators between parts of identities. */
const PART_ENDS = '|:/,; ';

/**
 * Returns true if a text is one of the parts of an identity, such as the account in `ann@x.com|203.0.113.7`. Only whole parts match:
 * otherwise users who see only hashes could guess identities letter by letter.
 */
export function hasPart(identity: string, part: string): boolean {
  for (let at = identity.indexOf(part); at >= 0; at = identity.indexOf(part, at + 1)) {
    const [before, after] = [identity[at - 1], identity[at + part.length]];
    if ([before, after].every((next) => next === undefined || PART_ENDS.includes(next))) return true;
  }
  return false;
}
