import type { Command } from '../connection.js';

/** The first bytes of RESP3 types whose replies differ from those of RESP2, and from one type mapping of an app to another. */
const MAP = '%'.charCodeAt(0);
const DOUBLE = ','.charCodeAt(0);

/** The type mapping of our commands, whatever that of the app: maps as lists of names and values, scores as text. */
export const TYPE_MAPPING = { [MAP]: Array, [DOUBLE]: String } as const;

/** Reads a reply as ioredis does: RESP3 puts each member of a sorted set in a list with its score. */
export function replyOf([name, ...args]: Command, reply: unknown): unknown {
  if (!Array.isArray(reply)) return reply;
  if (name === 'hgetall') return recordOf(reply);
  return args.at(-1) === 'WITHSCORES' ? reply.flat() : reply;
}

function recordOf(namesAndValues: readonly unknown[]): Record<string, unknown> {
  const record: Record<string, unknown> = {};
  for (let i = 0; i < namesAndValues.length; i += 2) record[String(namesAndValues[i])] = namesAndValues[i + 1];
  return record;
}

/** Where the key of a command of the console is; -1 if it has none. */
export function keyIndexOf([name]: Command): number {
  switch (name) {
    case 'time':
    case 'info':
    case 'dbsize':
    case 'randomkey':
      return -1;
    case 'memory':
      return 2;
    default:
      return 1;
  }
}
