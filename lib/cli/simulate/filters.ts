import { cliMessages } from '../../engine/errors/messages/cli.js';
import { UsageError } from '../command.js';
import type { Field } from './fields.js';

/** Which requests of a log are simulated, by their paths and statuses. */
export interface Filters {
  readonly path: RegExp | undefined;
  readonly status: RegExp | undefined;
}

const STATUS = /^[1-5](?:\d\d|xx)$/i;

/** Reads the options `--path` and `--status`, each of which may be given several times. */
export function readFilters(paths: readonly string[], statuses: readonly string[]): Filters {
  for (const path of paths) {
    if (path === '') throw new UsageError(cliMessages.wrongOption('path', path, "a path, such as /login or '/api/*'"));
  }
  for (const status of statuses) {
    if (!STATUS.test(status))
      throw new UsageError(cliMessages.wrongOption('status', status, 'a status, such as 404 or 2xx'));
  }
  return {
    path: oneOf(paths.map((path) => path.split('*').map(literal).join('[^]*?'))),
    status: oneOf(statuses.map((status) => status.toLowerCase().replace('xx', String.raw`\d\d`))),
  };
}

/** Makes of fields what says whether a record is simulated. `field` is asked only for what filters need. */
export function filterOf<R>(
  { path, status }: Filters,
  field: (option: 'path' | 'status') => Field<R>,
): ((record: R) => boolean) | undefined {
  const parts = [[path, 'path'] as const, [status, 'status'] as const].flatMap(([pattern, option]) =>
    pattern === undefined ? [] : [{ pattern, read: field(option) }],
  );
  if (parts.length === 0) return undefined;
  return (record) => parts.every(({ pattern, read }) => pattern.test((read(record) ?? '').split('?', 1)[0]!));
}

function oneOf(patterns: readonly string[]): RegExp | undefined {
  return patterns.length === 0 ? undefined : new RegExp(`^(?:${patterns.join('|')})$`);
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}
