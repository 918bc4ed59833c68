import { isIP } from 'node:net';
import { changeText } from '../../nest/explain/format.js';
import { hashedHeader } from '../../app/key-resolvers/header.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { entryOf } from '../../app/overrides/lists/listed.js';
import { type ListForm, readForm } from '../../app/overrides/lists/list-options.js';
import type { OverrideRecord } from '../../app/overrides/override-record.js';
import { printableJson, printableLines } from '../../engine/util/printable.js';
import { withoutSecrets } from '../../engine/errors/reasons.js';
import { changesRedisOf, type Places, placesOf, type StartedApp } from '../app/started-app.js';
import { causeOf, OPERATION_OPTIONS, timeOf, withApp } from '../app/operation.js';
import { recordReport, storedOverride, valueText } from '../app/stored-overrides.js';
import { readPlace } from '../app/place.js';
import { assertKeepsChanges, assertUsedName, assertUsedPrefix } from '../app/used-names.js';
import {
  argumentsOf,
  type Command,
  type CommandOption,
  type CommandOptions,
  InputError,
  type ReadArguments,
  UsageError,
} from '../command.js';

type ListAction = 'deny' | 'allow' | 'unlist';

const FOR: CommandOption = {
  value: '<time>',
  help: "How long, at most 1 year (default: until you remove it with 'unlist')",
};
const NAMED = "other commands: here, name the limit with '--name'";
const options = (time: CommandOption): CommandOptions => ({
  name: { value: '<limit>', help: 'The name of the limit in the app (default: all limits)' },
  for: time,
  ...OPERATION_OPTIONS,
  limit: { ...OPERATION_OPTIONS.limit, onlyFor: NAMED },
  everywhere: { ...OPERATION_OPTIONS.everywhere, onlyFor: NAMED },
});

const ABOUT: Readonly<Record<ListAction, { does: string; options: CommandOptions; nothing: string }>> = {
  deny: {
    does: `Denies all requests of a client on all instances, without a call to Redis. Replaces an
entry of the client that 'allow' added.`,
    options: options(FOR),
    nothing: '',
  },
  allow: {
    does: `Exempts a client from one limit or all limits on all instances. Replaces an entry of the
client that 'deny' added.`,
    options: options(FOR),
    nothing: '',
  },
  unlist: {
    does: `Removes an entry that 'deny' or 'allow' added. Entries of the module's options or of a
policy then apply again.`,
    options: options({ ...FOR, onlyFor: "'deny' and 'allow'" }),
    nothing: ', or there is no such entry',
  },
};

const command = (action: ListAction): Command => ({
  usage: ['<who> [--name <limit>] --redis <url>', '<who> [--name <limit>] --module <file>'],
  about: `${ABOUT[action].does} Prints the entry before and after.

<who> is an address or network such as 203.0.113.7 or 10.0.0.0/8, an identity that limits
count by such as tenant:acme, or a prefix of identities such as 'trial:*'.`,
  options: ABOUT[action].options,
  exits: {
    1: `nothing was changed: Redis cannot be reached, no instance uses the prefix or the limit${ABOUT[action].nothing}`,
  },
  async run(read, { stdout }) {
    const [who = ''] = argumentsOf(read, 'who: an address, a network, an identity or a pattern');
    // Validated before connecting.
    readWho(who);
    causeOf(read);
    const place = readPlace(read, { name: read.values.get('name'), optional: true });
    const report = await withApp(place, true, (app) => changeList(app, action, who, read));
    const { entry, limit, before, after } = report;
    stdout.write(
      read.switches.has('json')
        ? `${printableJson({ action, entry, ...(limit !== undefined && { limit }), before: json(before), after: json(after) })}\n`
        : textOf(report),
    );
    return 0;
  },
});

export const denyCommand = command('deny');
export const allowCommand = command('allow');
export const unlistCommand = command('unlist');

/** Throws if no instance would read the change. */
async function assertRead(places: Places, limit: string | undefined, isForced: boolean): Promise<void> {
  assertKeepsChanges(places);
  if (isForced) return;
  await (limit === undefined ? assertUsedPrefix(places) : assertUsedName(places, limit));
}

async function changeList(app: StartedApp, action: ListAction, who: string, read: ReadArguments) {
  const limit = read.values.get('name');
  const own = changesRedisOf(app);
  const key = readWho(who);
  const entry = entryOf(key);
  const address = { kind: 'list', limit: limit ?? '', key } as const;
  const before = await storedOverride(own, address);
  const places = placesOf(app);
  if (places !== undefined) await assertRead(places, limit, read.switches.has('force'));
  const time = timeOf(read);
  const of = { ...causeOf(read), ...(limit !== undefined && { limit }) };
  if (action === 'unlist') {
    if (!(await app.service.unlist(entry, of))) throw new InputError(cliMessages.notListed(who, limit));
  } else await app.service[action](entry, { ...of, ...(time !== undefined && { expiresIn: time as never }) });
  return { entry, limit, before, after: await storedOverride(own, address) };
}

/** The address of an argument's entry. Throws `UsageError`. */
function readWho(who: string): string {
  const [form, value] = entryFor(who);
  const entry = readForm(form, value);
  if ('expected' in entry)
    throw new UsageError(cliMessages.wrongArgument('<who>', withoutSecrets(value), entry.expected));
  return entry.key;
}

/** The form and the value of an argument's entry. An argument that looks like an address is one, so that an invalid network is reported as such. */
function entryFor(who: string): readonly [form: ListForm, value: string] {
  if (isIP(who.split('/', 1)[0]!) !== 0) return ['ip', who];
  return who.endsWith('*') ? ['pattern', who] : ['identity', hashedHeader(who)];
}

function json(record: OverrideRecord | undefined): object | null {
  return record === undefined ? null : recordReport(record);
}

function textOf({ entry, limit, before, after }: Awaited<ReturnType<typeof changeList>>): string {
  const who = entry.ip ?? entry.identity ?? entry.pattern;
  return printableLines([
    `${who}, ${limit === undefined ? 'all limits' : `limit '${limit}'`}`,
    '',
    `before  ${stateText(before)}`,
    `after   ${stateText(after)}`,
  ]);
}

function stateText(record: OverrideRecord | undefined): string {
  return record === undefined ? 'in no list that was changed at run time' : valueText(record) + changeText(record);
}
