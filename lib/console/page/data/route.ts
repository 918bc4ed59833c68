import { Store, useStore } from './store.js';

export const VIEWS = ['overview', 'limit', 'lookup', 'deviations', 'rates', 'lists', 'changes'] as const;
export type View = (typeof VIEWS)[number];

/** The parameters of a view, such as a range, a filter or a page, by name. */
export type Params = Readonly<Record<string, string>>;

/** The view that the page displays. It is in the address after the `#`; identities never are. */
export interface Route {
  readonly view: View;
  readonly limit?: string;
  readonly params: Params;
}

export const route = new Store<Route>(read());

window.addEventListener('hashchange', () => (route.value = read()));

/** The address of a view, without empty parameters. */
export function hrefOf(view: View, limit?: string, params: Params = {}): string {
  const given = Object.entries(params).filter(([, value]) => value !== '');
  const query = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
  return `#/${view}${limit === undefined ? '' : `/${encodeURIComponent(limit)}`}${query}`;
}

/** Changes parameters of the current view without a new entry in the browser's history. */
export function setParams(changed: Params): void {
  const { value } = route;
  const params = { ...value.params, ...changed };
  history.replaceState(history.state, '', hrefOf(value.view, value.limit, params));
  route.value = read();
}

/**
 * A parameter of the address, and a function that changes it. The default isn't in the address. Changing the list also removes the
 * parameter `page`, so that the list starts at its first page.
 */
export function useParam<T extends string = string>(
  name: string,
  otherwise: NoInfer<T>,
  allowed?: readonly T[],
): [T, (value: T) => void] {
  const { params } = useStore(route);
  const given = Object.hasOwn(params, name) ? (params[name] as T) : otherwise;
  const value = allowed === undefined || allowed.includes(given) ? given : otherwise;
  const set = (next: T): void => setParams({ page: '', [name]: next === otherwise ? '' : next });
  return [value, set];
}

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view, limit] = path.split('/');
  const known = VIEWS.find((name) => name === view) ?? 'overview';
  const name = decoded(limit);
  const params = Object.fromEntries(new URLSearchParams(query));
  if (name === undefined) return { view: known === 'limit' ? 'overview' : known, params };
  return { view: known, limit: name, params };
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text ? decodeURIComponent(text) : undefined;
  } catch {
    return undefined;
  }
}
