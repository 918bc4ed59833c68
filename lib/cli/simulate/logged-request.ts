import type { RequestKey } from './tracked-keys.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { ipIdentity } from '../../app/key-resolvers/ip.js';
import { UsageError } from '../command.js';

/** The requests of a log to simulate. */
export type Filters = ReadonlyMap<'path' | 'status', RegExp>;

const STATUS = /^[1-5](?:\d\d|xx)$/i;

/** Reads the options `--path` and `--status`, which may be repeated. */
export function readFilters(paths: readonly string[], statuses: readonly string[]): Filters {
  if (paths.includes(''))
    throw new UsageError(cliMessages.wrongOption('path', '', "a path, such as /login or '/api/*'"));
  const wrong = statuses.find((status) => !STATUS.test(status));
  if (wrong !== undefined)
    throw new UsageError(cliMessages.wrongOption('status', wrong, 'a status, such as 404 or 2xx'));
  const filters = new Map<'path' | 'status', RegExp>();
  if (paths.length > 0) filters.set('path', oneOf(paths.map((path) => path.split('*').map(literal).join('[^]*?'))));
  const digits = statuses.map((status) => status.toLowerCase().replace('xx', String.raw`\d\d`));
  if (statuses.length > 0) filters.set('status', oneOf(digits));
  return filters;
}

/** Returns a function that selects the records to simulate. `field` is only called for fields that the filters need. */
export function filterOf<R>(
  filters: Filters,
  field: (option: 'path' | 'status') => Field<R>,
): ((record: R) => boolean) | undefined {
  const parts = [...filters].map(([option, pattern]) => ({ pattern, read: field(option) }));
  if (parts.length === 0) return undefined;
  return (record) => parts.every(({ pattern, read }) => pattern.test((read(record) ?? '').split('?', 1)[0]!));
}

function oneOf(patterns: readonly string[]): RegExp {
  return new RegExp(`^(?:${patterns.join('|')})$`);
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

/** Reads a field of a record: a non-empty text, or `undefined`. */
export type Field<R> = (record: R) => string | undefined;

const TEMPLATE_PARTS = /\{([^{}]*)\}|([^{}]+)|[{}]/g;

/** Reads keys: `ip` as in an app, `global` for all requests together, a field, or a template such as `{tenant}:{user.id}`. */
export function keyField<R>(key: string, field: (name: string) => Field<R>, address: () => Field<R>): Field<R> {
  if (key === 'global') return () => 'global';
  if (key === 'ip') {
    const ip = address();
    return (record) => ipIdentity(ip(record));
  }
  if (!/[{}]/.test(key)) return field(key);
  const parts = [...key.matchAll(TEMPLATE_PARTS)].map(([, name, text]): string | Field<R> => {
    if (text !== undefined) return text;
    if (name === undefined || name === '') throw new UsageError(cliMessages.wrongOption('key', key, TEMPLATE));
    return field(name);
  });
  return (record) => {
    let identity = '';
    for (const part of parts) {
      const text = typeof part === 'string' ? part : part(record);
      if (text === undefined) return undefined;
      identity += text;
    }
    return identity;
  };
}

const TEMPLATE = 'a field, or a template with fields in braces such as {tenant}:{user}';

/** Throws for an invalid key before anything is read. */
export function assertKeySyntax(key: string): void {
  if (key === '') throw new UsageError(cliMessages.wrongOption('key', key, TEMPLATE));
  keyField(key, noField, noField);
}

const noField = () => () => undefined;

/** Reads a cost: a whole number >= 0. */
export function readCost(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return undefined;
  const cost = Number(text);
  return Number.isSafeInteger(cost) ? cost : undefined;
}

export const reasons = {
  tooLong: (most: number) => `is longer than ${most} characters`,
  notOfFormat: (format: string) => `is not of the format '${format}'`,
  noTime: (field: string) => `has no time from 1970 to 2099 in '${field}'`,
  noKey: (key: string) => `has no key '${key}'`,
  noBytes: (field: string) => `has no whole number >= 0 of bytes in '${field}'`,
  noCost: (field: string) => `has no whole number >= 0 in '${field}'`,
};

/** A request from a log, or a generated one. */
export interface LoggedRequest {
  /** Whole microseconds since the epoch. */
  readonly time: number;
  /** Its identity for each of the limits' keys. */
  readonly keys: readonly RequestKey[];
  /** The cost in units: a whole number >= 1. */
  readonly cost: number;
  /** The bytes of its response, if a limit counts them. */
  readonly bytes?: number;
}

/** Reads a line: a request, the reason why it isn't one, or nothing if it is filtered out. */
export type ReadLine = (line: string) => LoggedRequest | string | undefined;

/** The data of a line that limits need in addition to its time. */
export interface WantedFields {
  /** Each is `ip`, `global`, a field, or a template with fields in braces. */
  readonly keys: readonly string[];
  readonly cost: string | undefined;
  /** True if a limit counts the bytes of responses. */
  readonly bytes?: boolean;
  readonly time: string | undefined;
  readonly filters: Filters;
}

export interface LogFormat {
  readonly name: string;
  matches(line: string): boolean;
  /** Creates a reader of lines. Throws `UsageError` if the format lacks a field; `samples` are the first lines. */
  reader(wanted: WantedFields, samples: readonly string[]): ReadLine;
}
