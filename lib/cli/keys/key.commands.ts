import { ConsoleLog } from '../../console/changes/console-log.js';
import { readNoted } from '../../console/telemetry/noted-keys.js';
import { hasPart } from '../../console/views/has-part.js';
import { ShownNames } from '../../console/shown-names.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import type { ExplainedLimit } from '../../nest/explain/explanation.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import type { WithinOptions } from '../../engine/limits/consume-options.js';
import { readCause } from '../../app/overrides/change-options.js';
import type { LimitRegistry } from '../../app/rules/limit-registry.js';
import { keysOfShown } from '../../app/rules/resolve/keys-of-shown.js';
import type { Rule } from '../../app/rules/rule.js';
import { columns, printable, printableJson, showMs } from '../../engine/util/printable.js';
import { placesOf, redisOf } from '../app/app-redis.js';
import { withApp } from '../app/operation.js';
import { isWithoutHome } from '../app/region-role.js';
import { asPublished, refuseBareAddress } from '../app/published-limit.js';
import type { StartedApp } from '../app/started-app.js';
import { assertCountsHere, assertHasHome, assertUsed } from '../app/used-names.js';
import { type Command, InputError, UsageError } from '../command.js';
import { KEY_HELP } from './help.js';
import { type KeyAction, type KeySettings, readSettings } from './key.settings.js';

/** The state of a key, before or after. */
interface KeyState {
  readonly quota: number;
  readonly mode: ExplainedLimit['mode']['mode'];
  /** Absent if a list decides. */
  readonly state?: ExplainedLimit['state'];
}

/** What a command did. */
interface KeyReport {
  readonly action: KeyAction;
  readonly limit: string;
  readonly key: string;
  readonly before: KeyState;
  readonly after: KeyState;
  /** Why it is not known what was changed of the limit: then the quota is the configured one. */
  readonly unread?: string;
}

/** The most blocked keys that an error names. */
const MOST_FOUND = 20;

type Change = (limiter: Limiter, key: string, options: WithinOptions, time: string) => Promise<unknown>;

const CHANGES: Readonly<Record<KeyAction, Change>> = {
  block: (limiter, key, options, time) => limiter.block(key, time, options),
  unblock: (limiter, key, options) => limiter.unblock(key, options),
  reset: (limiter, key, options) => limiter.reset(key, options),
};

const command = (action: KeyAction): Command => ({
  help: KEY_HELP[action],
  async run(args, { stdout }) {
    const read = readSettings(action, args, process.env);
    readCause(read.cause, `nestjs-sluice ${action}`);
    const settings = { ...read, place: await asPublished(read.place) };
    const report = await withApp(settings.place, true, (app) => changeKey(app, settings));
    stdout.write(settings.json ? `${printableJson(report)}\n` : textOf(report, settings));
    return 0;
  },
});

/** Refuses a key for a time. */
export const blockCommand = command('block');
/** Ends the block of a key. */
export const unblockCommand = command('unblock');
/** Forgets what a key has used. */
export const resetCommand = command('reset');

async function changeKey(app: StartedApp, settings: KeySettings): Promise<KeyReport> {
  const { action, place, limit, key: shown, time, force } = settings;
  const { service } = app;
  const rule = app.provided<LimitRegistry>('LimitRegistry')?.named.find((each) => each.rule.name === limit)?.rule;
  // The explanation has a message for an unknown name.
  const path = rule === undefined ? { key: shown, options: {} } : keysOfShown(rule, shown);
  if (path === undefined) throw new UsageError(cliMessages.wrongPath(limit, shown));
  if (rule?.perRoute === true) throw new UsageError(cliMessages.countsPerRoute(limit));
  const question = { limit, key: path.key, ...path.options };
  const places = 'file' in place ? undefined : placesOf(app);
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
  await CHANGES[action](service.ofRule(rule as Rule), path.key, path.options, time);
  const after = stateOf(await service.explain(question), cliMessages.unreadAfter);
  await leave(new ConsoleLog(redisOf(app).redis, new ShownNames(false)), settings);
  const isUnread = places !== undefined && isWithoutHome(places.role, places.home);
  return { action, limit, key: shown, before, after, ...(isUnread && { unread: cliMessages.changesAtHome() }) };
}

/** The blocked keys of a limit that contain a part, as far as instances with a console have noted them. */
async function blockedWithPart(app: StartedApp, rule: Rule, part: string): Promise<string[]> {
  const { notes } = await readNoted(redisOf(app).redis, 'blocks', Date.now()).catch(() => ({ notes: [] }));
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

/** Whether something is known of a key. */
function isTouched({ quota, state }: KeyState): boolean {
  if (state === undefined) return false;
  const { remaining, resetAfterMs, blockedForMs = 0, offences = 0 } = state;
  return remaining < quota || resetAfterMs > 0 || blockedForMs > 0 || offences > 0;
}

function stateOf(
  { limits, unread }: { readonly limits: readonly ExplainedLimit[]; readonly unread?: string },
  message: (reason: string) => string,
): KeyState {
  if (unread !== undefined) throw new InputError(message(unread));
  const { quota, mode, state } = limits[0]!;
  return { quota, mode: mode.mode, ...(state && { state }) };
}

/** The console shows these changes beside its own. Those that nobody signs are not kept. */
async function leave(entries: ConsoleLog, { action, limit, key, time, cause }: KeySettings): Promise<void> {
  const { by, reason } = cause;
  if (by === undefined && reason === undefined) return;
  const after = action === 'block' ? { after: time } : {};
  await entries.write({ at: Date.now(), action, limit, key, ...cause, ...after });
}

const DONE = {
  block: (time: string) => `blocked for ${time}`,
  unblock: () => 'not blocked any more',
  reset: () => 'starts fresh',
} as const satisfies Record<KeyAction, (time: string) => string>;

function textOf({ action, limit, key, before, after, unread }: KeyReport, { time }: KeySettings): string {
  const rows = [
    ['', 'left', 'resets in', 'blocked for'],
    ['before', ...cells(before)],
    ['after', ...cells(after)],
  ];
  const lines = [`limit '${limit}', key '${key}': ${DONE[action](time)}`, '', ...columns(rows)];
  if (action === 'block' && after.mode !== 'enforce') {
    lines.push('', `the limit is ${after.mode === 'off' ? 'off' : 'in shadow mode'}, so it refuses nobody`);
  }
  if (unread !== undefined) lines.push('', `another rate or mode may hold: ${unread}`);
  if (after.state === undefined) lines.push('', 'a list decides for this key in place of the limit');
  return lines.map((line) => `${printable(line, Infinity)}\n`).join('');
}

function cells({ quota, state }: KeyState): string[] {
  if (state === undefined) return ['-', '-', '-'];
  return [`${state.remaining}/${quota}`, time(state.resetAfterMs), time(state.blockedForMs)];
}

function time(ms: number | undefined): string {
  return ms === undefined || ms === 0 ? '-' : showMs(ms);
}
