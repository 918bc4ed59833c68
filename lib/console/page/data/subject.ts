import type { Lookup } from '../../api.js';
import { Store } from './store.js';

/** Who Look-up shows. It is kept in memory only: in the address it would end up in histories and logs. */
export const subject = new Store<{ readonly identity: string; readonly found?: Lookup }>({ identity: '' });

/** Identities that were typed here, by the hashes that stand for them in top keys and the log. */
const known = new Map<string, string>();

export function remember(id: string, identity: string): void {
  known.set(id, identity);
}

export function identityOf(id: string): string | undefined {
  return known.get(id);
}
