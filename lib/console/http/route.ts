import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { Cause } from '../changes/cause.js';
import type { Ends } from '../changes/rate-changes.js';
import type { Fields } from '../fields.js';
import type { CatalogEntry } from '../limit-catalog.js';
import type { RateLimitConsole } from '../rate-limit-console.js';
import type { Exchange } from './exchange.js';

/** Who may call a route: whoever may view the console, act on single keys for a while, or change anything. */
export type RouteRole = 'view' | 'act' | 'change';

/** The metadata of handlers that pages of other sites may call: links lead to the page, and it loads its files. */
export const OPEN = Symbol('OPEN');

/** A request to a route. */
export interface Call {
  readonly console: RateLimitConsole;
  readonly exchange: Exchange;
  readonly fields: Fields;
  /** The last part of the console's path. */
  readonly folder: string;
  /** Who makes a change, and why. Determined once everything else is valid. */
  cause(): Promise<Cause>;
  /** Rejects if a user who may only act on keys does, replaces or ends something that has no end. */
  checkEnds(hasEnd: boolean, replaces: () => Promise<boolean>): Promise<void>;
}

/** What a route does once its fields are checked. Resolves to what is sent as JSON; to `undefined` if it has responded itself. */
export type Answer = () => unknown;

/** A route of the console. */
export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly role: RouteRole;
  /** The fields that it knows, of the query or the body; all are ignored if absent. Changes also need a `reason`. */
  readonly fields?: readonly string[];
  /** Whether pages of other sites may link to it. */
  readonly isOpen?: true;
  /** Reads the fields. */
  readonly read: (call: Call) => Answer | Promise<Answer>;
}

/** A route of the view role that reads. */
export const view = (path: string, fields: readonly string[] | undefined, read: Route['read']): Route => ({
  method: 'GET',
  path,
  role: 'view',
  ...(fields && { fields }),
  read,
});
export const post =
  (role: RouteRole) =>
  (path: string, fields: readonly string[], read: Route['read']): Route => ({
    method: 'POST',
    path,
    role,
    fields,
    read,
  });

/** The label of a limit that is shown: beside the app, more are shown than can be asked. */
export function shownLimit({ console, fields }: Call): string {
  const label = fields.text('limit', 'the name of a limit');
  if (label !== '' && !console.catalog.has(label)) fields.refuse('limit', consoleMessages.unknownLimit());
  return label;
}

/** The label of a limit that is declared in this process. */
export function declaredLimit({ console, fields }: Call): string {
  const label = fields.text('limit', 'the name of a limit');
  if (label !== '' && console.catalog.find(label) === undefined) {
    fields.refuse('limit', consoleMessages.unknownLimit());
  }
  return label;
}

/** Reads the place of a page in a list. */
export function cursorOf(fields: Fields): number {
  const cursor = fields.optional('cursor', (field) =>
    fields.text(field, "the 'next' of a page", (text) => /^\d{1,9}$/.test(text)),
  );
  return Number(cursor ?? 0);
}

/** Reads when a change ends, if it does. */
export function endsOf(fields: Fields): Ends {
  const expiresIn = fields.optional('expiresIn', (field) => fields.duration(field));
  return expiresIn === undefined ? {} : { expiresIn };
}

/** Shows something of a limit that is declared in this process. */
export function ofDeclared(call: Call, answer: (entry: CatalogEntry) => unknown): Answer {
  const label = declaredLimit(call);
  return () => answer(call.console.catalog.find(label)!);
}

/** Changes a limit. */
export function ofLimit(call: Call, change: (limit: CatalogEntry, cause: Cause) => unknown): Answer {
  const limit = call.console.rates.limit(call.fields);
  return async () => change(limit!, await call.cause());
}
