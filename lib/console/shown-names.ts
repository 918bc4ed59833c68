import { isIP } from 'node:net';
import { ipIdentity } from '../app/key-resolvers/ip.js';
import type { ListEntry } from '../app/config/list-entry.js';
import type { Override } from '../app/overrides/override.js';
import type { ListedEntry } from '../app/overrides/lists/list.js';
import { hashOf } from '../storage/telemetry/decision-event.js';
import type { ListItem, OverrideInfo } from './api.js';

const ADDRESS = 'ip:';
/** Stands for all clients. */
const GLOBAL = 'global';

/** How identities are shown: in plain text, or as hashes. Names that stand for many are always shown. */
export class ShownNames {
  constructor(readonly isPlain: boolean) {}

  /** The key of an override, or of a change to a counter. */
  key(key: string): string {
    return this.isPlain || key.endsWith('*') || key === GLOBAL ? key : hashOf(key);
  }

  /** Who a list entry names. */
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
      ...(by !== undefined && { by }),
      ...(reason !== undefined && { reason }),
    };
  }

  override({ key, version, expiresAt, by, reason, ...rest }: Override): OverrideInfo {
    const { patch, mode } = rest as Pick<OverrideInfo, 'patch' | 'mode'>;
    return {
      ...(key !== undefined && { key: this.key(key) }),
      version,
      expiresAt: expiresAt ?? null,
      ...(by !== undefined && { by }),
      ...(reason !== undefined && { reason }),
      ...(patch !== undefined && { patch }),
      ...(mode !== undefined && { mode }),
    };
  }
}

/** Identifies a list entry without revealing who it names. */
export function entryId({ entry, limit }: Pick<ListedEntry, 'entry' | 'limit'>): string {
  return hashOf(JSON.stringify([limit ?? '', entry]));
}

/** The address from which an identity is made, if any. */
export function addressIn(identity: string): string | undefined {
  if (!identity.startsWith(ADDRESS)) return undefined;
  const address = identity.slice(ADDRESS.length);
  return isIP(address) === 0 ? undefined : address;
}

/** An identity as limits count it: an address stands for its network. Identities from the app's functions stay unchanged. */
export function countedIdentity(identity: string, key: unknown, ipv6Prefix: number): string {
  const address = typeof key === 'string' ? addressIn(identity) : undefined;
  return address === undefined ? identity : (ipIdentity(address, ipv6Prefix) ?? identity);
}
