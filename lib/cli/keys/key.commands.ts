import { ConsoleLog } from '../../console/changes/change-log.js';
import { readNoted } from '../../console/telemetry/noted-keys.js';
import { hasPart, ShownNames } from '../../console/shown-names.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import type { ExplainedLimit, Explanation } from '../../nest/explain/explanation.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import type { WithinOptions } from '../../engine/limits/consume-options.js';
import { keysOfShown } from '../../app/rules/ancestors.js';
import type { Rule } from '../../app/rules/rule.js';
import { columns, printableJson, printableLines, showMs } from '../../engine/util/printable.js';
import { limitNamed, placesOf, redisOf, routesOf, type StartedApp } from '../app/started-app.js';
import { asPublished, causeOf, OPERATION_OPTIONS, refuseBareAddress, timeOf, withApp } from '../app/operation.js';
import { readPlace } from '../app/place.js';
import { isWithoutHome } from '../app/app-redis.js';
import { assertCountsHere, assertHasHome, assertUsed, isTouched } from '../app/used-names.js';
import { hashedHeader } from '../../app/key-resolvers/header.js';
import {
  argumentsOf,
  type Command,
  type CommandOptions,
  InputError,
  type ReadArguments,
  UsageError,
} from '../command.js';

type KeyAction = 'block' | 'unblock' | 'reset';

type KeySettings = ReturnType<typeof readSettings>;

/** The state of a key, before or after the action. */
interface KeyState {
  readonly quota: number;
  readonly mode: ExplainedLimit['mode']['mode'];
  /** Absent if a list decides. */
  readonly state?: NonNullable<ExplainedLimit['state']>;
}

/** The result of a command, also its JSON. */
interface KeyReport {
  readonly action: KeyAction;
  readonly limit: string;
  readonly key: string;
  readonly before: KeyState;
  readonly after: KeyState;
  /** The reason if changes of the limit could not be read. The quota is then the configured one. */
  readonly unread?: string;
}

const MOST_FOUND = 20;

const BLOCK_OPTIONS: CommandOptions = {
  for: { value: '<time>', help: 'How long, at most 1 year (default: 10m)' },
  ...OPERATION_OPTIONS,
};
const OPTIONS: CommandOptions = { ...BLOCK_OPTIONS, for: { ...BLOCK_OPTIONS['for']!, onlyFor: "'block'" } };

interface Action {
  readonly does: string;
  readonly options: CommandOptions;
  /** Further reasons why nothing is changed. */
  readonly nothing: string;
  change(limiter: Limiter, key: string, options: WithinOptions, time: string): Promise<unknown>;
  done(time: string): string;
}

const ACTIONS: Readonly<Record<KeyAction, Action>> = {
  block: {
    does: `Blocks a key on all instances, even if it has units left, and replaces its current block.
The counter of the key is left unchanged.`,
    options: BLOCK_OPTIONS,
    nothing: '',
    change: (limiter, key, options, time) => limiter.block(key, time, options),
    done: (time) => `blocked for ${time}`,
  },
  unblock: {
    does: `Ends the block of a key and forgets its offences. If the limit's own 'blockFor' had
blocked the key, the key also gets all its units back. If you know only a part of the key,
such as the account in ann@x.com|203.0.113.7, pass that part: the error lists the blocked
keys with it that instances with a console recorded.`,
    options: OPTIONS,
    nothing: ', or the key is not blocked',
    change: (limiter, key, options) => limiter.unblock(key, options),
    done: () => 'not blocked any more',
  },
  reset: {
    does: 'Resets the counter of a key, so that all its units are available, and ends its block.',
    options: OPTIONS,
    nothing: ', or the key has used nothing',
    change: (limiter, key, options) => limiter.reset(key, options),
    done: () => 'starts fresh',
  },
};

const command = (action: KeyAction): Command => ({
  usage: ['<limit> <key> --redis <url> --limit <limit>', '<limit> <key> --module <file>'],
  about: `${ACTIONS[action].does} Prints the state before and after.

<limit> is the name of the limit in the app, from 'define' or the module's 'limits'.
<key> is a key that the limit counts, such as tenant:acme or ip:203.0.113.7.`,
  options: ACTIONS[action].options,
  exits: {
    1: `nothing was changed: Redis cannot be reached or has no counter of the limit${ACTIONS[action].nothing}`,
  },
  async run(read, { stdout }) {
    const settings = readSettings(action, read);
    const place = await asPublished(settings.place);
    const report = await withApp(place, true, (app) => changeKey(app, settings));
    stdout.write(settings.json ? `${printableJson(report)}\n` : textOf(report, settings));
    return 0;
  },
});

export const blockCommand = command('block');
export const unblockCommand = command('unblock');
export const resetCommand = command('reset');

function readSettings(action: KeyAction, read: ReadArguments) {
  const [limit = '', key = ''] = argumentsOf(read, 'the name of a limit', 'a key such as tenant:acme');
  return {
    action,
    place: readPlace(read, { name: limit, published: true }),
    limit,
    key: hashedHeader(key),
    time: timeOf(read) ?? '10m',
    cause: causeOf(read),
    force: read.switches.has('force'),
    json: read.switches.has('json'),
  };
}

async function changeKey(app: StartedApp, settings: KeySettings): Promise<KeyReport> {
  const { action, limit, key: shown, time, force } = settings;
  const { service } = app;
  const rule = limitNamed(app, limit)?.rule;
  const routes = rule === undefined ? routesOf(app, limit) : [];
  if (routes.length > 0) throw new UsageError(cliMessages.changesOnRoute(limit, routes));
  // For an unknown name, the explanation has a message.
  const path = rule === undefined ? { key: shown, options: {} } : keysOfShown(rule, shown);
  if (path === undefined) throw new UsageError(cliMessages.wrongPath(limit, shown));
  if (rule?.perRoute === true) throw new UsageError(cliMessages.countsPerRoute(limit));
  const question = { limit, key: path.key, ...path.options };
  const places = placesOf(app);
  if (places !== undefined && rule !== undefined) assertHasHome(places, rule.limit);
  const before = stateOf(await service.explain(question), cliMessages.unreadState);
  const isUsed = isTouched(before);
  if (places !== undefined) {
    await assertCountsHere(places, rule!.limit);
    if (!isUsed && !force) {
      refuseBareAddress(rule!, path.key);
      await assertUsed(places, rule!.limit);
    }
  }
  if (action === 'unblock' && before.state?.blockedForMs === 0) {
    throw new InputError(cliMessages.notBlocked(limit, shown, await blockedWithPart(app, rule!, shown)));
  }
  if (action === 'reset' && before.state !== undefined && !isUsed) {
    throw new InputError(cliMessages.nothingCounted(limit, shown));
  }
  await ACTIONS[action].change(service.ofRule(rule as Rule), path.key, path.options, time);
  const after = stateOf(await service.explain(question), cliMessages.unreadAfter);
  await leave(new ConsoleLog(redisOf(app), new ShownNames(false)), settings);
  const isUnread = places !== undefined && isWithoutHome(places.role, places.home);
  return { action, limit, key: shown, before, after, ...(isUnread && { unread: cliMessages.changesAtHome() }) };
}

/** The blocked keys of a limit that contain a text, as recorded by instances with a console. */
async function blockedWithPart(app: StartedApp, rule: Rule, part: string): Promise<string[]> {
  const { notes } = await readNoted(redisOf(app), 'blocks', Date.now()).catch(() => ({ notes: [] }));
  const noted = notes.filter(({ label, identity }) => label === rule.name && hasPart(identity, part));
  const keys = [...new Set(noted.map(({ identity }) => identity))].slice(0, MOST_FOUND);
  const blocked = await Promise.all(
    keys.map(async (shown) => {
      const path = keysOfShown(rule, shown);
      if (path === undefined) return false;
      const { limits } = await app.service.explain({ limit: rule.name, key: path.key, ...path.options });
      return (limits[0]?.state?.blockedForMs ?? 0) > 0;
    }),
  );
  return keys.filter((_, index) => blocked[index]);
}

function stateOf({ limits, unread }: Explanation, message: (reason: string) => string): KeyState {
  if (unread !== undefined) throw new InputError(message(unread));
  const { quota, mode, state } = limits[0]!;
  return { quota, mode: mode.mode, ...(state && { state }) };
}

/** Adds the change to the console's log. Changes without an actor are not logged. */
async function leave(entries: ConsoleLog, { action, limit, key, time, cause }: KeySettings): Promise<void> {
  const { by, reason } = cause;
  if (by === undefined && reason === undefined) return;
  const after = action === 'block' ? { after: time } : {};
  await entries.write({ at: Date.now(), action, limit, key, ...cause, ...after });
}

function textOf({ action, limit, key, before, after, unread }: KeyReport, { time }: KeySettings): string {
  const rows = [
    ['', 'left', 'resets in', 'blocked for'],
    ['before', ...cells(before)],
    ['after', ...cells(after)],
  ];
  const lines = [`limit '${limit}', key '${key}': ${ACTIONS[action].done(time)}`, '', ...columns(rows)];
  if (action === 'block' && after.mode !== 'enforce') {
    lines.push('', `the limit is ${after.mode === 'off' ? 'off' : 'in shadow mode'}, so it refuses nobody`);
  }
  if (unread !== undefined) lines.push('', `another rate or mode may hold: ${unread}`);
  if (after.state === undefined) lines.push('', 'a list decides for this key in place of the limit');
  return printableLines(lines);
}

function cells({ quota, state }: KeyState): string[] {
  if (state === undefined) return ['-', '-', '-'];
  return [`${state.remaining}/${quota}`, time(state.resetAfterMs), time(state.blockedForMs)];
}

function time(ms: number | undefined): string {
  return ms === undefined || ms === 0 ? '-' : showMs(ms);
}
