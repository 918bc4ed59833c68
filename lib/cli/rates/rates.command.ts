import { cliMessages } from '../../engine/errors/messages/cli.js';
import { causeText, changeText } from '../../nest/explain/format.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { CurrentMode, CurrentRate } from '../../app/overrides/override.js';
import { withoutSecrets } from '../../engine/errors/reasons.js';
import { columns, printableJson, printableLines } from '../../engine/util/printable.js';
import { changesRedisOf, limitNamed, placesOf, type StartedApp } from '../app/started-app.js';
import { asPublished, causeOf, OPERATION_OPTIONS, refuseBareAddress, timeOf, withApp } from '../app/operation.js';
import { entryText, overrideReport, storedOverrides, valueText } from '../app/stored-overrides.js';
import { hashedHeader } from '../../app/key-resolvers/header.js';
import { readPlace } from '../app/place.js';
import { assertKeepsChanges, assertUsedForChange } from '../app/used-names.js';
import { argumentsOf, type Command, InputError, type ReadArguments, refuseOptions, UsageError } from '../command.js';

interface Part {
  /** The arguments after the name of the limit. The last one may be repeated. */
  readonly expected: readonly string[];
  readonly repeats?: true;
  /** The options that it doesn't accept. */
  readonly without: readonly string[];
  /** Changes a limit. Resolves to true if there was anything to change. */
  readonly work: (app: StartedApp, limit: string, read: ReadArguments) => Promise<boolean>;
}

const PARTS: Readonly<Record<string, Part>> = {
  set: {
    expected: ['an option and its value, such as rate=50'],
    repeats: true,
    without: [],
    async work({ service }, limit, read) {
      const patch = Object.fromEntries(read.positionals.slice(2).map(optionOf));
      const inherit = read.values.get('inherit');
      await service.setRate(limit, patch, {
        ...lasting(read),
        ...(inherit !== undefined && { inherit: inherit as never }),
      });
      return true;
    },
  },
  mode: {
    expected: ['a mode: enforce, shadow or off'],
    without: ['inherit'],
    async work({ service }, limit, read) {
      await service.setMode(limit, read.positionals[2] as LimitMode, lasting(read));
      return true;
    },
  },
  clear: {
    expected: [],
    without: ['for', 'inherit'],
    async work({ service }, limit, read) {
      const options = { ...ofKey(read), ...causeOf(read) };
      const rate = await service.clearRate(limit, options);
      return (await service.clearMode(limit, options)) || rate;
    },
  },
};
const NAMES = ['list', ...Object.keys(PARTS)];

export const ratesCommand: Command = {
  usage: [
    '[list] --redis <url>',
    'set <limit> <option=value...> --redis <url> --limit <limit>',
    'mode <limit> enforce|shadow|off --redis <url> --limit <limit>',
    'clear <limit> --redis <url> --limit <limit>',
    '... --module <file>',
  ],
  about: `Changes rates and modes of limits on all instances without a deployment, and prints them
before and after:
  nestjs-sluice rates set api rate=50 burst=100 --key 'tenant:*' --for 1h
'list' shows all changes of rates, modes and lists that apply now. 'clear' removes the
changes of a limit's rate and mode.`,
  options: {
    key: {
      value: '<key>',
      help: "Only for this key, or for all keys with a prefix: 'tenant:*' (default: all keys)",
    },
    for: { value: '<time>', help: 'How long, at most 1 year (default: until you clear it)' },
    inherit: {
      value: '<how>',
      help: 'What happens to units already used: keep, proportional, additive or reset (default: keep)',
    },
    ...OPERATION_OPTIONS,
  },
  exits: {
    1: 'nothing was changed: Redis cannot be reached or has no counter of the limit, or there is no change to clear',
  },
  async run(read, { stdout }) {
    const [name = 'list'] = read.positionals;
    if (!NAMES.includes(name)) throw new UsageError(cliMessages.unknownPart(String(withoutSecrets(name)), NAMES));
    const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
    const text = part === undefined ? await list(read) : await change(name, part, read);
    stdout.write(text);
    return 0;
  },
};

async function list(read: ReadArguments): Promise<string> {
  if (read.positionals.length > 0) argumentsOf(read, 'list');
  refuseOptions(read, ['key', 'for', 'inherit', 'limit', 'everywhere', 'by', 'reason', 'force'], 'changes');
  const place = readPlace(read, { name: undefined, optional: true });
  const found = await withApp(place, false, async (app) => {
    const places = placesOf(app);
    if (places !== undefined) assertKeepsChanges(places);
    return storedOverrides(changesRedisOf(app));
  });
  if (read.switches.has('json')) return `${printableJson({ changes: found.map(overrideReport) })}\n`;
  if (found.length === 0) return 'no rate, mode or list is changed\n';
  const rows = found.map(({ kind, limit, key, record }) => [
    limit === '' ? 'all limits' : limit,
    kind === 'list' ? entryText(key) : key === '' ? 'all keys' : key,
    `${valueText(record)}${changeText(record)}`,
  ]);
  return printableLines(columns([['limit', 'key', 'change'], ...rows], [0, 1, 2]));
}

async function change(name: string, { expected, repeats, without, work }: Part, read: ReadArguments): Promise<string> {
  refuseOptions(read, without, 'other changes of rates');
  const more = repeats ? read.positionals.slice(2 + expected.length).map(() => expected.at(-1)!) : [];
  const [, limit = ''] = argumentsOf(read, name, 'the name of a limit', ...expected, ...more);
  causeOf(read);
  const place = await asPublished(readPlace(read, { name: limit, published: true }));
  const { before, after } = await withApp(place, true, async (app) => {
    const own = changesRedisOf(app);
    // Fails without Redis. The library itself would return its last known values.
    await own.run([['time']]);
    const named = limitNamed(app, limit);
    const places = placesOf(app);
    if (places !== undefined) {
      assertKeepsChanges(places);
      if (named !== undefined && !read.switches.has('force')) {
        refuseBareAddress(named.rule, ofKey(read).key ?? '');
        await assertUsedForChange(places, named.limit);
      }
    }
    const was = await currentOf(app, limit, read);
    if (!(await work(app, limit, read))) throw new InputError(cliMessages.noOverride(limit, ofKey(read).key));
    return { before: was, after: await currentOf(app, limit, read) };
  });
  const { key } = ofKey(read);
  if (read.switches.has('json'))
    return `${printableJson({ limit, ...(key !== undefined && { key }), before, after })}\n`;
  const rows = [
    ['', 'rate', 'by', 'mode', 'by'],
    ['before', ...cells(before)],
    ['after', ...cells(after)],
  ];
  const lines = [
    `limit '${limit}', ${key === undefined ? 'all keys' : `key '${key}'`}`,
    '',
    ...columns(rows, [0, 1, 2, 3, 4]),
  ];
  return printableLines(lines);
}

async function currentOf({ service }: StartedApp, limit: string, read: ReadArguments) {
  return { rate: await service.getRate(limit, ofKey(read)), mode: await service.getMode(limit, ofKey(read)) };
}

function cells({ rate, mode }: Awaited<ReturnType<typeof currentOf>>): string[] {
  const { algo, ...options } = rate.options;
  const given = Object.entries(options).map(([option, value]) => `${option}=${String(value)}`);
  return [`${algo} ${given.join(' ')}`, sourceText(rate), mode.mode, sourceText(mode)];
}

function sourceText({ source, override }: CurrentRate | CurrentMode): string {
  if (override === undefined) return source === 'policy' ? 'the policy' : 'the configuration';
  const { key, version } = override;
  return `change ${version}${key === undefined ? '' : ` of '${key}'`}${causeText(override)}`;
}

function ofKey({ values }: ReadArguments): { key?: string } {
  const key = values.get('key');
  return key === undefined ? {} : { key: hashedHeader(key) };
}

function lasting(read: ReadArguments) {
  const time = timeOf(read);
  return { ...ofKey(read), ...causeOf(read), ...(time !== undefined && { expiresIn: time as never }) };
}

const NUMBER = /^-?\d{1,16}(?:\.\d{1,16})?$/;

/** An option and its value: a number, `true`, or a text. */
function optionOf(text: string): [string, unknown] {
  const [, option, value = ''] = /^([A-Za-z]+)=(.+)$/s.exec(text) ?? [];
  if (option === undefined) throw new UsageError(cliMessages.wrongPatch(text));
  if (value === 'true' || value === 'false') return [option, value === 'true'];
  return [option, NUMBER.test(value) ? Number(value) : value];
}
