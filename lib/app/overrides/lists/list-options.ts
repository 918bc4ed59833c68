import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { listMessages } from '../../../engine/errors/messages/rates.js';
import { oneOf, wholeNumber, wrongOption } from '../../../engine/options/check-options.js';
import { type ConfiguredListEntry, type ListName, LISTS, type ListsOptions } from '../../config/list-entry.js';
import type { ChangeCause } from '../change-cause.js';
import { assertOptions, CAUSE, MOST_OF_A_PAGE, readCause, readEnd } from '../change-options.js';
import { isOverrideKey, prefixOf } from '../override-address.js';
import type { ListOptions, ListPageOptions } from './list.js';
import { identityKey, type Listed, networkKey } from './listed.js';
import { readNetwork } from './network.js';

/** An entry of the module's options. */
export interface ConfiguredEntry {
  readonly location: string;
  /** Empty for all limits. */
  readonly limit: string;
  readonly listed: Listed;
}

/** Reads an entry into the address of its record. */
export function readEntry(entry: unknown, location: string, more: readonly string[] = []): string {
  if (typeof entry !== 'object' || entry === null)
    throw new RateLimitConfigError(listMessages.notAListEntry(location, entry));
  const given = Object.entries(entry).filter(([name, value]) => value !== undefined && !more.includes(name));
  const [form, value] = given[0] ?? [];
  if (given.length !== 1 || !isListForm(form)) {
    throw new RateLimitConfigError(listMessages.notAListEntry(location, entry));
  }
  const read = readForm(form, value);
  if ('expected' in read) throw wrongOption(location, form, value, read.expected);
  return read.key;
}

/** Reads the options of an entry; `ends` has the form that stores expect. */
export function readListOptions(
  options: unknown,
  location: string,
  known: readonly string[] = ['expiresIn'],
): ChangeCause & { limit: string | undefined; ends: string } {
  assertOptions(options, location, ['limit', ...known, ...CAUSE]);
  const { limit, expiresIn } = options as ListOptions;
  return { limit, ends: readEnd(expiresIn, location), ...readCause(options as ChangeCause, location) };
}

/** Reads the client to look up in the lists. */
function readClient({ ip, key }: Pick<ListPageOptions, 'ip' | 'key'>, location: string): { ip?: string; key?: string } {
  const network = ip === undefined ? undefined : readNetwork(ip);
  if (typeof network === 'string' || network?.text.includes('/') === true) {
    throw wrongOption(location, 'ip', ip, "an IP address such as '203.0.113.7'");
  }
  if (key !== undefined && (typeof key !== 'string' || key === '')) {
    throw wrongOption(location, 'key', key, 'a string that is not empty');
  }
  return { ...(network && { ip: network.text }), ...(key !== undefined && { key }) };
}

/** Reads the options that select a page of entries. */
export function readListPage(options: unknown, location: string) {
  assertOptions(options, location, ['limit', 'list', 'ip', 'key', 'cursor', 'count']);
  const { limit, list, cursor, count = 100, ...asked } = options as ListPageOptions;
  const [, name, key] = typeof cursor === 'string' ? (/^(.*)\n(.+)$/s.exec(cursor) ?? []) : [];
  if (cursor !== undefined && (name === undefined || key === undefined)) {
    throw wrongOption(location, 'cursor', cursor, "the 'next' of a page");
  }
  return {
    ...readClient(asked, location),
    limit,
    list: list === undefined ? undefined : oneOf(location, 'list', list, LISTS),
    last: name === undefined || key === undefined ? undefined : { limit: name, key },
    count: wholeNumber(location, 'count', count, { max: MOST_OF_A_PAGE }),
  };
}

/** Reads the lists of the module's options. */
export function readConfiguredLists(lists: ListsOptions = {}): ConfiguredEntry[] {
  assertOptions(lists, 'lists', [...LISTS, 'status']);
  if (lists.status !== undefined && lists.status !== 403 && lists.status !== 429) {
    throw wrongOption('lists', 'status', lists.status, '403 or 429');
  }
  const known = new Map<string, ConfiguredEntry>();
  for (const list of LISTS) {
    const entries: unknown = lists[list] ?? [];
    if (!Array.isArray(entries)) {
      throw wrongOption('lists', list, entries, 'a list of entries');
    }
    for (const [index, entry] of entries.entries()) {
      const read = readConfigured(list, entry, `lists.${list}[${index}]`);
      const other = known.get(`${read.limit}\n${read.listed.key}`);
      if (other !== undefined && other.listed.list !== list) {
        throw new RateLimitConfigError(listMessages.onBothLists(read.location, other.location));
      }
      known.set(`${read.limit}\n${read.listed.key}`, read);
    }
  }
  return [...known.values()];
}

function readConfigured(list: ListName, entry: unknown, location: string): ConfiguredEntry {
  const key = readEntry(entry, location, ['limit', 'reason']);
  const { limit, reason } = entry as ConfiguredListEntry;
  if (limit !== undefined && (typeof limit !== 'string' || limit === '')) {
    throw wrongOption(location, 'limit', limit, "a limit's name");
  }
  const { reason: why } = readCause({ ...(reason !== undefined && { reason }) }, location);
  return { location, limit: limit ?? '', listed: { key, list, record: undefined, reason: why } };
}

/** The ways in which an entry can identify clients. */
export const FORMS = ['ip', 'identity', 'pattern'] as const;

export type ListForm = (typeof FORMS)[number];

export function isListForm(name: unknown): name is ListForm {
  return FORMS.includes(name as ListForm);
}

/** Turns the client of an entry into the address of its record, or returns the expected form. */
export function readForm(form: ListForm, value: unknown): { readonly key: string } | { readonly expected: string } {
  if (form === 'ip') {
    const network = readNetwork(value);
    return typeof network === 'string' ? { expected: network } : { key: networkKey(network.text) };
  }
  if (form === 'pattern') {
    const isPattern = isOverrideKey(value) && prefixOf(value) !== undefined;
    return isPattern ? { key: identityKey(value) } : { expected: listMessages.listedPatternExpected() };
  }
  const isIdentity = isOverrideKey(value) && prefixOf(value) === undefined;
  return isIdentity ? { key: identityKey(value) } : { expected: listMessages.listedIdentityExpected() };
}
