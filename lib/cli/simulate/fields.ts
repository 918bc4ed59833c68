import { cliMessages } from '../../engine/errors/messages/cli.js';
import { ipIdentity } from '../../app/key-resolvers/ip.js';
import { UsageError } from '../command.js';

/** Reads a field of a record: a text that is not empty, or `undefined`. */
export type Field<R> = (record: R) => string | undefined;

const TEMPLATE_PARTS = /\{([^{}]*)\}|([^{}]+)|[{}]/g;

/** Reads keys: `ip` as an app does, `global` for all requests together, a field, or a template such as `{tenant}:{user.id}`. */
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

/** Refuses an invalid key before anything is read. */
export function assertKeySyntax(key: string): void {
  if (key === '') throw new UsageError(cliMessages.wrongOption('key', key, TEMPLATE));
  keyField(
    key,
    () => nothing,
    () => nothing,
  );
}

const nothing = () => undefined;

/** Reads a cost: a whole number >= 0. */
export function readCost(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return undefined;
  const cost = Number(text);
  return Number.isSafeInteger(cost) ? cost : undefined;
}

/** Why a line is not a request. */
export const reasons = {
  tooLong: (most: number) => `is longer than ${most} characters`,
  notOfFormat: (format: string) => `is not of the format '${format}'`,
  noTime: (field: string) => `has no time from 1970 to 2099 in '${field}'`,
  noKey: (key: string) => `has no key '${key}'`,
  noCost: (field: string) => `has no whole number >= 0 in '${field}'`,
};
