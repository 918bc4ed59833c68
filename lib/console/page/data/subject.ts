import type { Lookup } from '../../api.js';
import { Store } from './store.js';

/** Whom Look-up shows. It is kept in memory only: an address would end in histories and logs. */
export const subject = new Store<{ readonly identity: string; readonly found?: Lookup }>({ identity: '' });

/** Identities that were typed here, by the hashes that top keys and the log name them by. */
const known = new Map<string, string>();

export function remember(id: string, identity: string): void {
  known.set(id, identity);
}

export function identityOf(id: string): string | undefined {
  return known.get(id);
}
