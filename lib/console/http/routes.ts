import { hashedHeader } from '../../app/key-resolvers/header.js';
import { LISTS } from '../../app/config/list-entry.js';
import { LIMIT_MODES } from '../../engine/limits/limit-settings.js';
import { plural } from '../../engine/util/figures.js';
import type { Changed, DeviationKind, Range } from '../api.js';
import type { LoggedChange } from '../changes/change-log.js';
import type { KeyChange } from '../changes/key-changes.js';
import type { RateChanges } from '../changes/rate-changes.js';
import type { Fields } from '../fields.js';
import type { CatalogEntry } from '../limit-catalog.js';
import type { Cause } from '../problem.js';
import type { RateLimitConsole } from '../rate-limit-console.js';
import { RANGES } from '../views/overviews.js';
import {
  type Answer,
  type Call,
  cursorOf,
  endsOf,
  type Route,
  routesOf,
  SECURITY_HEADERS,
  shownLimit,
} from './route.js';
import { serveAsset, servePage } from './page.js';

const view = routesOf('GET', 'view');
const ask = routesOf('POST', 'view');
const act = routesOf('POST', 'act');
const change = routesOf('POST', 'change');
const mayAct = routesOf('GET', 'act');
const mayChange = routesOf('GET', 'change');
const RANGE_NAMES = Object.keys(RANGES) as Range[];
const KINDS: readonly DeviationKind[] = ['overrides', 'blocks', 'lists', 'leases'];
/** Maximum length of a text to search for: as long as an identity. */
const LONGEST_FIND = 1024;
const KEY = ['limit', 'identity', 'id'];

/** All routes. Identities are always in the body, so that no log of URLs contains them. */
export const ROUTES: readonly Route[] = [
  { ...view('', undefined, servePage), isOpen: true },
  { ...view('assets/:file', undefined, serveAsset), isOpen: true },
  withoutFields('api/session', (console) => console.session),
  withoutFields('api/incidents', (console) => console.incidents.now()),
  view('api/overview', ['range'], ({ console, fields }) => {
    const range = fields.optional('range', (field) => fields.oneOf(field, RANGE_NAMES)) ?? '5m';
    return () => console.overviews.overview(range);
  }),
  view('api/live', ['limit', 'top'], serveLive),
  view('api/top', ['limit'], (call) => {
    const limit = shownLimit(call);
    return () => call.console.top.of(limit);
  }),
  ask('api/lookup', ['identity'], ({ console, fields, client }) => {
    const identity = fields.identity();
    return async () => {
      await console.lookupBudget.take(client);
      return console.lookups.all(identity);
    };
  }),
  ask('api/deviations', ['kind', 'find', 'limit', 'cursor'], readDeviations),
  view('api/lists', ['cursor'], ({ console, fields }) => {
    const cursor = cursorOf(fields);
    return () => console.lists.page(cursor);
  }),
  view('api/rates', ['limit'], ({ console, fields }) => {
    const limit = fields.has('limit') ? console.catalog.requested(fields) : undefined;
    return async () => console.rates.all(await console.overviews.lastHour(), limit?.label);
  }),
  ofDeclared('api/demand', (entry, { console }) => console.demands.of(entry)),
  ofDeclared('api/tenants', (entry, { console }) => console.parts.tenants(entry)),
  ofDeclared('api/tree', async (entry, { console, client }) => {
    await console.deviationBudget.take(client);
    return console.parts.tree(entry);
  }),
  view('api/changes', ['limit'], (call) => {
    const limit = call.fields.has('limit') ? shownLimit(call) : undefined;
    return () => call.console.changes.read(limit);
  }),
  view('api/rollback', ['version'], ({ console, fields }) => {
    const version = fields.text('version', 'the number of a change', (text) => /^\d{1,15}$/.test(text));
    return () => console.undoing.preview(Number(version));
  }),

  // Responds only to users who have the role.
  mayAct('api/act', undefined, serveNothing),
  ofKey('block', ['duration'], (fields) => {
    const duration = fields.duration('duration');
    const after = typeof duration === 'number' ? `${duration} ms` : duration;
    return { after, change: (limiter, key, options) => limiter.block(key, duration, options) };
  }),
  ofKey('unblock', [], () => ({ change: (limiter, key, options) => limiter.unblock(key, options) })),
  ofKey('reset', [], () => ({ change: (limiter, key, options) => limiter.reset(key, options) })),
  ofKey('refund', ['units'], (fields) => charged('refund', fields)),
  ofKey('penalize', ['units'], (fields) => charged('penalize', fields)),
  act('api/keys/override', [...KEY, 'patch', 'expiresIn'], async (call) => {
    const { fields } = call;
    const { keys, rates } = call.console;
    rates.limit(fields);
    const target = await keys.target(fields);
    const patch = fields.patch();
    const { expiresIn } = endsOf(fields);
    return async () => {
      await call.checkEnds(expiresIn !== undefined, () => keys.hasEndlessRate(target()));
      return keys.override(target(), patch, expiresIn, await call.cause());
    };
  }),
  act('api/keys/clear-override', KEY, async (call) => {
    const { fields } = call;
    const { keys, rates } = call.console;
    rates.limit(fields);
    const target = await keys.target(fields);
    return async () => {
      await call.checkEnds(true, () => keys.hasEndlessRate(target()));
      return keys.clearOverride(target(), await call.cause());
    };
  }),
  act('api/lists', ['list', 'identity', 'ip', 'limit', 'expiresIn'], (call) => {
    const { fields } = call;
    const { lists } = call.console;
    const list = fields.oneOf('list', LISTS);
    const listing = lists.listing(fields);
    const ends = endsOf(fields);
    return async () => {
      await call.checkEnds(ends.expiresIn !== undefined, () => lists.isEndless(listing()));
      return lists.put(list, listing(), ends, await call.cause());
    };
  }),
  act('api/lists/remove', ['id', 'identity', 'ip', 'limit'], (call) => {
    const { fields } = call;
    const { lists } = call.console;
    const id = fields.optional('id', (field) => fields.text(field, "the 'id' of an entry"));
    const listing = lists.listing(fields);
    return async () => {
      await call.checkEnds(true, () => lists.isEndless(id ?? listing()));
      return id === undefined ? lists.end(listing(), await call.cause()) : lists.endById(id, await call.cause());
    };
  }),

  mayChange('api/write', undefined, serveNothing),
  ofLimit('api/rates/set', ['patch', 'expiresIn'], (fields) => {
    const patch = fields.patch();
    const ends = endsOf(fields);
    return (rates, limit, cause) => rates.set(limit, patch, ends, cause);
  }),
  ofLimit('api/rates/clear', [], () => (rates, limit, cause) => rates.clear(limit, cause)),
  ofLimit('api/deviations/clear', ['of', 'id'], (fields) => {
    const of = fields.oneOf('of', ['rate', 'mode']);
    const id = fields.text('id', "the 'id' of an override");
    return (rates, limit, cause) => rates.clearOf(limit, of, id, cause);
  }),
  ofLimit('api/modes/set', ['mode', 'expiresIn'], (fields) => {
    const mode = fields.oneOf('mode', LIMIT_MODES);
    const ends = endsOf(fields);
    return (rates, limit, cause) => rates.setMode(limit, mode, ends, cause);
  }),
  ofLimit('api/modes/clear', [], () => (rates, limit, cause) => rates.clearMode(limit, cause)),
  ofLimit('api/candidates/set', ['patch'], (fields) => {
    const patch = fields.patch();
    return (rates, limit, cause) => rates.setCandidate(limit, patch, cause);
  }),
  ofLimit('api/candidates/enforce', [], () => (rates, limit, cause) => rates.enforceCandidate(limit, cause)),
  ofLimit('api/candidates/clear', [], () => (rates, limit, cause) => rates.clearCandidate(limit, cause)),
  change('api/rollback', ['version', 'newest'], (call) => {
    const { console, fields } = call;
    const version = fields.whole('version', 0);
    const newest = fields.optional('newest', (field) => fields.whole(field, 0));
    return async () => console.undoing.rollback(version, newest, await call.cause());
  }),
  change('api/undo', ['version'], (call) => {
    const { console, fields } = call;
    const version = fields.whole('version', 1);
    return async () => console.undoing.undo(version, await call.cause());
  }),
];

/** A route that takes no fields. */
function withoutFields(path: string, answer: (console: RateLimitConsole) => unknown): Route {
  return view(path, undefined, (call) => () => answer(call.console));
}

/** A route that shows details of a limit that is declared in this process. */
function ofDeclared(path: string, answer: (entry: CatalogEntry, call: Call) => unknown): Route {
  return view(path, ['limit'], (call) => {
    const entry = call.console.catalog.requested(call.fields);
    return () => answer(entry!, call);
  });
}

type LimitChange = (rates: RateChanges, limit: CatalogEntry, cause: Cause) => Promise<Changed>;

/** A route that changes a limit. `more`: its fields in addition to the limit; `read` makes the change from all fields. */
function ofLimit(path: string, more: readonly string[], read: (fields: Fields) => LimitChange): Route {
  return change(path, ['limit', ...more], (call) => {
    const { rates } = call.console;
    const limit = rates.limit(call.fields);
    const made = read(call.fields);
    return async () => made(rates, limit!, await call.cause());
  });
}

function serveNothing({ exchange }: Call): Answer {
  return () => exchange.send(204, undefined, {});
}

function serveLive(call: Call): Answer {
  const { console, fields, exchange, client } = call;
  const isTop = fields.optional('top', (field) => fields.oneOf(field, ['0', '1'])) === '1';
  const limit = isTop || fields.has('limit') ? shownLimit(call) : undefined;
  return () => {
    console.live.makeRoom(client);
    console.live.add(exchange.raw(), SECURITY_HEADERS, isTop ? limit : undefined, client);
  };
}

function readDeviations({ console, fields, client }: Call): Answer {
  const kind = fields.oneOf('kind', KINDS);
  const expected = `a text of at most ${LONGEST_FIND} characters`;
  const find = fields.optional('find', (field) => fields.text(field, expected, ({ length }) => length <= LONGEST_FIND));
  const limit = fields.optional('limit', () => console.catalog.requested(fields))?.label;
  const cursor = cursorOf(fields);
  return async () => {
    if (kind === 'blocks' || kind === 'leases') await console.deviationBudget.take(client);
    return console.deviations.page({ kind, find: hashedHeader(find?.trim() ?? ''), limit, cursor });
  };
}

/**
 * A route that changes one counter: api/keys/<action>. `more`: its fields in addition to the key; `read` makes the change from all
 * fields.
 */
function ofKey(action: LoggedChange['action'], more: readonly string[], read: (fields: Fields) => KeyChange): Route {
  return act(`api/keys/${action}`, [...KEY, ...more], async (call) => {
    const { keys } = call.console;
    const target = await keys.target(call.fields);
    const made = read(call.fields);
    return async () => keys.act(target(), action, made, await call.cause());
  });
}

function charged(action: 'refund' | 'penalize', fields: Fields): KeyChange {
  const units = fields.whole('units', 1);
  return {
    after: plural(units, 'unit'),
    // The user relies on a change that is reported as done.
    change: (limiter, key, options) => limiter[action](key, units, { ...options, strict: true }),
  };
}
