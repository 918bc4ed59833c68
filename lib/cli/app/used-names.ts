import { algorithms } from '../../algorithms/index.js';
import { cliMessages } from '../../errors/messages/cli.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { Connection } from '../../redis/connection.js';
import { overridesKey } from '../../stores/redis/keys.js';
import { reasonOf } from '../../util/reason-of.js';
import { InputError } from '../command.js';

/** The keys of one step of a search, and the most of all its steps. */
const STEP = 1000;
const MOST = 1_000_000;
/** The most keys of a search for names to suggest. */
const MOST_FOR_NAMES = 50_000;

/** What stands behind the identity of a counter's key: `namespace:name:code`, and what belongs to the counter. */
const BEHIND_IDENTITY = /\}:(.*)$/s;
const CODES = new Map(algorithms.names.map((name) => [algorithms.get(name)!.code, name]));

/**
 * Refuses a limit of which Redis has no counter: no instance has used it, so that a change of it would do nothing. Also refuses one that
 * instances count by another algorithm, whose counters have other keys.
 */
export async function assertUsed(redis: Connection, prefix: string, limit: CompiledLimit): Promise<void> {
  const { name, recordId, algorithm } = limit;
  const codes = new Set<string>();
  const begin = `${recordId}:`;
  const isIt = (key: string) => {
    const [, id = ''] = BEHIND_IDENTITY.exec(key) ?? [];
    const code = id.startsWith(begin) ? id.slice(begin.length, begin.length + algorithm.code.length) : undefined;
    if (code !== undefined) codes.add(code);
    return code === algorithm.code;
  };
  if (await anyKey(redis, `${escaped(prefix)}:{*}:${escaped(recordId)}:*`, MOST, isIt)) return;
  const others = [...codes].map((code) => CODES.get(code) ?? `an option that gives keys the code '${code}'`);
  if (others.length > 0) throw new InputError(cliMessages.countedByOther(name, algorithm.name, others));
  const names = new Set<string>();
  await anyKey(redis, `${escaped(prefix)}:{*}:*`, MOST_FOR_NAMES, (key) => {
    const found = nameIn(key);
    if (found !== undefined) names.add(found);
    return false;
  });
  throw new InputError(cliMessages.unusedName(name, prefix, [...names].toSorted()));
}

/** Refuses a prefix that no instance uses: none listens for changes, and Redis has no key of it. */
export async function assertUsedPrefix(redis: Connection, prefix: string): Promise<void> {
  if ((await listeners(redis, overridesKey(prefix))) > 1) return;
  if (!(await anyKey(redis, `${escaped(prefix)}:{*}:*`, MOST, () => true))) {
    throw new InputError(cliMessages.unusedPrefix(prefix));
  }
}

/** How many connections listen to a channel, that of this process included; 0 if the server does not say. */
async function listeners(redis: Connection, channel: string): Promise<number> {
  const [reply] = (await redis.pipeline([['pubsub', 'numsub', channel]]).exec()) ?? [];
  return Number((reply?.[1] as unknown[] | null | undefined)?.[1] ?? 0);
}

/** Whether a key is found, in steps between which the server serves others. */
async function anyKey(
  redis: Connection,
  pattern: string,
  most: number,
  isIt: (key: string) => boolean,
): Promise<boolean> {
  let cursor = '0';
  for (let looked = 0; looked < most; looked += STEP) {
    const [reply] = (await redis.pipeline([['scan', cursor, 'match', pattern, 'count', STEP]]).exec()) ?? [];
    if (reply === undefined || reply[0] !== null) throw new InputError(cliMessages.notSearched(reasonOf(reply?.[0])));
    const [next, keys] = reply[1] as [string, string[]];
    if (keys.some(isIt)) return true;
    cursor = String(next);
    if (cursor === '0') return false;
  }
  return false;
}

function nameIn(key: string): string | undefined {
  const [, id = ''] = BEHIND_IDENTITY.exec(key) ?? [];
  const [, name, code = ''] = /^[^:]*:(.+?):([a-z]{2})(?:[./:].*)?$/s.exec(id) ?? [];
  return CODES.has(code) ? name : undefined;
}

/** A text of a pattern of Redis that stands for itself. */
function escaped(text: string): string {
  return text.replaceAll(/[\\*?[\]^]/g, String.raw`\$&`);
}
