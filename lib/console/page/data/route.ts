import { Store } from './store.js';

export const VIEWS = ['overview', 'limit', 'lookup', 'rates', 'lists', 'changes'] as const;
export type View = (typeof VIEWS)[number];

/** What the page shows. It is in the address after the `#`; identities never are. */
export interface Route {
  readonly view: View;
  /** A limit's name. */
  readonly limit?: string;
}

export const route = new Store<Route>(read());

window.addEventListener('hashchange', () => (route.value = read()));

export function hrefOf(view: View, limit?: string): string {
  return limit === undefined ? `#/${view}` : `#/${view}/${encodeURIComponent(limit)}`;
}

function read(): Route {
  const [view, limit] = location.hash.replace(/^#\/?/, '').split('/');
  const known = VIEWS.find((name) => name === view) ?? 'overview';
  const name = decoded(limit);
  if (name === undefined) return { view: known === 'limit' ? 'overview' : known };
  return { view: known, limit: name };
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text ? decodeURIComponent(text) : undefined;
  } catch {
    return undefined;
  }
}
