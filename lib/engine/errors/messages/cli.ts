import { counted, didYouMean, listOf, missingInput, nearest, show, unknownName, wrongInput } from '../wording.js';
import { MODULE_NAMESPACE } from '../../limits/limit-settings.js';
import { nearDuration, optionMessages } from './options.js';

const MOST_NAMES = 20;

const MOST_ROUTES = 5;

const MOST_OPTIONS = 12;

function shortened(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return names.slice(0, MOST_NAMES).map(show).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function firstOf(routes: readonly string[]): string {
  return listOf(routes.slice(0, MOST_ROUTES), 'and');
}

/** Where counters with these namespaces are declared. */
function placeOfCounters(namespaces: readonly string[]): string {
  if (namespaces.includes('')) return "by 'define' (without '--everywhere')";
  if (!isOnRoutes(namespaces)) return "by the module's 'limits' (with '--everywhere')";
  return `on ${firstOf(namespaces)}, with counters of that route or class`;
}

function isOnRoutes(namespaces: readonly string[]): boolean {
  return namespaces.every((each) => each !== '' && !each.startsWith(MODULE_NAMESPACE));
}

/** The suggestion after an unknown option of the command line. Its hyphens do not count as matching letters. */
function meantOption(received: string, known: readonly string[]): string {
  const near = nearest(received.replace(/^-+/, ''), known);
  if (near !== undefined) return `. Did you mean '--${near}'?`;
  return known.length > MOST_OPTIONS ? '' : `, expected one of ${known.map((option) => `--${option}`).join(', ')}`;
}

/** The messages of the command line program, which apps don't load. */
export const cliMessages = {
  noCommand: (known: readonly string[]) => missingInput('command', `one of ${known.join(', ')}`),
  unknownCommand: (received: string, known: readonly string[]) => unknownName('command', received, known),
  unknownPart: (received: string, known: readonly string[]) => unknownName('argument', received, known),
  unknownOption: (received: string, known: readonly string[]) =>
    `unknown option ${show(received)}${meantOption(received, known)}`,
  unreadableArguments: (reason: string) => reason,
  optionTwice: (option: string) => `--${option}: the option is given twice. Give it once`,
  wrongOption: (option: string, received: unknown, expected: string) =>
    wrongInput(`--${option}`, expected, received) + nearDuration(received, expected),
  wrongArgument: (argument: string, received: unknown, expected: string) => wrongInput(argument, expected, received),
  unknownValue: (option: string, received: string, known: readonly string[]) =>
    didYouMean(received, known) === ''
      ? wrongInput(`--${option}`, `one of ${known.join(', ')}`, received)
      : `--${option}: ${unknownName('value', received, known)}`,
  limitExpected: () => 'a limit such as gcra:60/1s, since no instance with a console publishes it',
  bareAddress: (key: string, expected: string) =>
    `${show(key)} is an address, and limits use another key for it. Use ${expected}, or '--force' if code counts by it`,
  missingOption: (option: string, expected: string) => missingInput(`--${option}`, expected),
  optionWithout: (option: string, other: string) => `--${option}: the option is only for ${other}`,
  missingArgument: (expected: string) => missingInput('argument', expected),
  extraArgument: (received: unknown, expected: readonly string[]) =>
    `unexpected argument ${show(received)}: expected ${expected.length === 0 ? 'only options' : `no more than ${listOf(expected, 'and')}`}`,
  countedByOther: (name: string, algo: string, others: readonly string[]) =>
    `instances count ${show(name)} by ${listOf(others, 'and')}, not by ${algo}, so this would change nothing. Set '--limit' as the app defines it`,
  noteOther: (name: string, algo: string, others: readonly string[]) =>
    `no counter of this limit exists now, but instances count ${show(name)} by ${listOf(others, 'and')}, not by ${algo}`,
  /** `namespaces` are those of the counters: empty for `define`, `@module` for the module's limits, otherwise a class or route. */
  noteElsewhere: (name: string, namespaces: readonly string[]) =>
    `no counter of this limit exists now, but instances count ${show(name)} ${placeOfCounters(namespaces)}` +
    (isOnRoutes(namespaces) ? ": to explain that one, use '--module' with '--controller' and '--handler'" : ''),
  countedElsewhere: (name: string, namespaces: readonly string[]) =>
    `instances count ${show(name)} ${placeOfCounters(namespaces)}, so this might change nothing. ` +
    (isOnRoutes(namespaces) ? "To change it by its name, move it to 'define' and use its name in @RateLimit. " : '') +
    "Use '--force' if you mean a limit that has no counter now",
  /** `routes`: methods, such as `OrdersController.create`, or classes. */
  explainsRoute: (name: string, routes: readonly string[]) => {
    const [, controller = '<class>', handler = '<method>'] = /^(\w+)\.(\w+)$/.exec(routes[0]!) ?? [];
    return `limit ${show(name)} is declared on ${firstOf(routes)}: use '--controller ${controller} --handler ${handler}' in place of '--name'`;
  },
  changesOnRoute: (name: string, routes: readonly string[]) =>
    `limit ${show(name)} is declared on ${firstOf(routes)}, and only limits of 'define', 'forFeature' and 'limits' can be changed by name. ` +
    "Move it to 'define' and use its name in @RateLimit",
  unusedName: (name: string, prefix: string, known: readonly string[]) =>
    `Redis has no counter of a limit ${show(name)} under the prefix ${show(prefix)}, so this might change nothing` +
    (didYouMean(name, known) ||
      (known.length === 0 ? ". Check the app's 'prefix'." : `. Expected one of ${shortened(known)}.`)) +
    " Use '--force' if the name is right: a counter disappears when its units are back",
  unusedPrefix: (prefix: string) =>
    `no instance uses the prefix ${show(prefix)}, so this would change nothing. Use the app's 'prefix', or '--force' before its first start`,
  unusedAtHome: (name: string) =>
    `the home of regions has no counter of a limit ${show(name)}, which may count in each region. ` +
    "Set '--redis' to a region's Redis in addition to '--home', or use '--module', or '--force' if the name is right",
  overRegions: (name: string) =>
    `limit ${show(name)} counts over several regions. Add 'scope=world' to '--limit', and '--home'; or use '--module'`,
  overRegionsAtHome: (name: string) =>
    `limit ${show(name)} counts over several regions. Set '--home' to the Redis that counts for all of them, or use '--module'`,
  notOverRegions: (name: string) =>
    `limit ${show(name)} counts in one region. Write '--limit' without 'scope=world', as the app defines it`,
  homeWithoutCounters: (name: string) =>
    `this is the home of regions, but limit ${show(name)} counts in each region. Set '--redis' to the region's Redis in addition to '--home'`,
  changesAtHome: () =>
    "this is the Redis of a region, but rates, modes and lists are stored at the home of the regions. Use '--home' or '--module'",
  changesWithoutHome: () => "rates, modes and lists are stored at the home of the regions. Use '--home'",
  changesUnknown: () => 'changes are stored at the home of the regions',
  notHome: (received: string, region: string | undefined, prefix: string) =>
    `--home: ${show(received)} is not the home of ${region === undefined ? 'regions' : `the region ${show(region)}`} under the prefix ` +
    `${show(prefix)}. Use the app's 'regions.home'`,
  publishedInRegions: (prefix: string) =>
    `this is the home of regions, but instances publish their limits under the prefix ${show(prefix)} in each region. ` +
    "Set '--redis' to a region's Redis, and '--home' to this one",
  consoleWithoutHome: () =>
    "Rates, modes and lists are stored at the home of the regions: '--home' shows and changes them, and looks up limits of scope 'world'.",
  notBesideApp: (name: string) =>
    `limit ${show(name)} counts over several regions, and its units are returned or owed in one of them. Do this in an instance of the app`,
  notSearched: (reason: string) =>
    `Redis does not allow this command to search for counters (${reason}), so it is unknown whether the name is right. Use '--force' or '--module'`,
  unreadState: (reason: string) => `the state cannot be read, so nothing was changed: ${reason}`,
  unreadAfter: (reason: string) => `the change was sent, but the state cannot be read again: ${reason}`,
  countsPerRoute: (name: string) =>
    `the limit ${show(name)} counts each route separately. Choose a limit that does not`,
  wrongPath: (name: string, received: string) =>
    wrongInput(`key of ${show(name)}`, "it after those of the limits that it is within, separated by '/'", received),
  notBlocked: (name: string, key: string, others: readonly string[] = []) =>
    `the key ${show(key)} of ${show(name)} is not blocked, so there is nothing to unblock` +
    (others.length === 0 ? '' : `; blocked keys that contain it: ${shortened(others)}`),
  nothingCounted: (name: string, key: string) =>
    `the key ${show(key)} of ${show(name)} has used nothing and is not blocked, so there is nothing to reset`,
  noOverride: (name: string, key: string | undefined) =>
    `${show(name)} has no change${key === undefined ? '' : ` for ${show(key)}`}, so there is nothing to clear`,
  notListed: (entry: string, limit: string | undefined) =>
    `${show(entry)} was added to no list${limit === undefined ? ' for all limits' : ` of ${show(limit)}`}, so there is nothing to remove`,
  noPublishedLimits: (prefix: string) =>
    `Redis has no limits of an app with the prefix ${show(prefix)}. Use that of an app whose instances had a console in the last week`,
  noPlatform: () =>
    'no HTTP platform of Nest is installed. Install @nestjs/platform-express or @nestjs/platform-fastify',
  unservable: (reason: string) => `the console cannot be served: ${reason}`,
  notOnRedis: () => "the app has no 'redis', so a change would end with this command. Use an app that counts on Redis",
  wrongPatch: (received: string) =>
    `unexpected argument ${show(received)}: expected an option and its value, such as rate=50`,
  unloadable: (file: string, reason: string) =>
    `the module ${show(file)} cannot be loaded. Pass a built file such as './dist/app.module.js': ${reason}`,
  noModule: (file: string, className: string | undefined, known: readonly string[]) =>
    `the module ${show(file)} exports ${className === undefined ? "neither a class 'AppModule' nor a single other class" : `no class ${show(className)}`}` +
    (didYouMean(className, known) ||
      (known.length > 0 ? `, expected one of ${known.join(', ')}` : ', expected a module class')),
  unstartable: (file: string, reason: string) => `the app of ${show(file)} cannot be started: ${reason}`,
  noLimits: () => 'the app has no RateLimitModule, so it has no limits to explain',
  noInput: () => missingInput('log', "a file, '-' for standard input, or '--generate'"),
  twoInputs: (received: readonly string[]) => `log: expected one input, received ${listOf(received.map(show), 'and')}`,
  svgIsInput: (path: string) => `--svg: ${show(path)} is the log. Use another file`,
  nothingToSimulate: (path: string) =>
    `${show(path)} has no limit that can be simulated. Add one with an 'algo' that is neither off nor 'concurrency'`,
  noPolicy: () => missingInput('policy file', 'at least one .yaml, .yml or .json file'),
  noPolicyFile: (path: string) =>
    `${show(path)} is not a policy file: expected a name that ends with .yaml, .yml or .json`,
  unreadableFile: (path: string, reason: string) => `${show(path)} cannot be read: ${reason}`,
  unwritableFile: (path: string, reason: string) => `${show(path)} cannot be written: ${reason}`,
  wrongLimit: (spec: string, expected: string) => `--limit ${show(spec)}: expected ${expected}`,
  wrongLimitOption: (spec: string, option: string, received: unknown, expected: string) =>
    wrongInput(`--limit ${show(spec)}.${option}`, expected, received),
  unknownLimitOption: (spec: string, option: string, known: readonly string[]) =>
    `--limit ${show(spec)}: ${optionMessages.unknown(option, known)}`,
  sharesNotSaid: (spec: string) =>
    `--limit ${show(spec)}.share: shares cannot be written as a single value. Write the limit without it: the total is the same, ` +
    'but the part of each tenant is not simulated',
  limitOptionTwice: (spec: string, option: string) =>
    `--limit ${show(spec)}.${option}: the option is given twice. Give it once`,
  notSimulated: (spec: string, algo: string) =>
    `--limit ${show(spec)}: '${algo}' cannot be simulated, since no log shows when its units are released. Use another algorithm`,
  notCalled: (spec: string, algo: string) =>
    `--limit ${show(spec)}: '${algo}' cannot be evaluated by one command, since each call needs its own number. Use another algorithm`,
  worldNotCalled: (spec: string) =>
    `--limit ${show(spec)}.scope: expected a limit that counts in one region, received 'world': units of other regions come from their home`,
  sameLimitTwice: (name: string) =>
    `--limit: two limits have the name ${show(name)}. Name each: algo:rate/interval@name`,
  unknownFormat: (line: string, formats: readonly string[]) =>
    `the first lines of the log have no known format (the first is ${show(line)}). Set '--format' to one of ${formats.join(', ')}`,
  unknownField: (option: string, field: string, known: readonly string[]) =>
    `--${option}: ${unknownName('field', field, [])}` +
    (didYouMean(field, known) || `, expected one of ${known.join(', ')}`),
  noField: (option: string, looked: readonly string[], found: readonly string[]) =>
    `--${option}: missing, expected a field: the first lines have none of ${looked.join(', ')}, only ` +
    (found.map(show).join(', ') || 'others'),
  noFieldOfLimits: (what: string, looked: readonly string[], found: readonly string[]) =>
    `a limit of the policy counts ${what}, and the first lines have none of the fields ${looked.join(', ')}, only ` +
    (found.map(show).join(', ') || 'others'),
  keyOfGenerated: (key: string) =>
    `the key of a limit is ${show(key)}, but generated requests have only 'ip' and 'global'`,
  tooManyGenerated: (spec: string, duration: string, most: number) =>
    `--generate and --for: expected at most ${most} requests, received ${spec} and ${show(duration)}`,
  nothingGenerated: () => 'no request was generated: the rate is too low for the time',
  allFiltered: (lines: number) => `'--path' and '--status' leave none of ${counted(lines, 'request')}`,
  emptyLog: () => 'the log is empty',
  nothingRead: (first: { line: number; reason: string; text: string } | undefined) =>
    'no line of the log could be read' +
    (first === undefined ? '' : `: line ${first.line} ${first.reason}: ${show(first.text)}`),
} as const;

/** The messages of `nestjs-sluice init`. */
export const initMessages = {
  noProject: (folder: string) =>
    `${show(folder)} isn't a Nest project: its package.json is missing or lacks '@nestjs/core'. Go to the folder of your project, or create one with 'npx @nestjs/cli new'`,
  noModule: (path: string) =>
    `the file ${show(path)} does not exist. Pass the file of the root module, such as '--module src/app.module.ts'`,
  noDecorator: (path: string) =>
    `${show(path)} has no class with @Module({ ... }). Pass the file of the root module, such as '--module src/app.module.ts'`,
  unreadableImports: (path: string) =>
    `the 'imports' of the module in ${show(path)} are not a list. Add 'RateLimitModule.forRoot({ ... })' to them yourself`,
  notInstalled: (command: string) =>
    `${show(command)} failed, so nestjs-sluice is not installed. Run the command yourself, then start the app`,
} as const;

/** The messages of the command `migrate`. */
export const migrateMessages = {
  noCompiler: (folder: string, version: string | undefined) =>
    `${folder} has ${version === undefined ? 'no TypeScript' : `TypeScript ${version}, which has no API`}. Install a version from 5 to 6: ` +
    "'npm install --save-dev typescript@5', or run 'npx -p typescript@5 -p nestjs-sluice nestjs-sluice migrate'",
  noPath: (path: string) => `${show(path)} does not exist. Pass a file or a folder`,
  uncommitted: (folder: string) =>
    `${folder} has uncommitted changes. Commit them first, or use '--dry-run' or '--force'`,
} as const;

/** The messages about routes without a limit. */
export const routeMessages = {
  nothingBuilt: (tried: readonly string[]) =>
    `no built app found: expected ${tried.join(', ')}. Build the app, or pass the path of its built entry`,
  noAppMade: (file: string) =>
    `${file} creates no app, and exports no module class. Pass a built file that calls NestFactory.create, or '<file>#<class>' of a module`,
  failedEarly: (file: string, reason: string) =>
    `${file} failed after it had created the app, which runs without its providers here: ${reason}. Later steps of the file are ` +
    'missing below, such as a prefix or versions',
  notAlone: (file: string) =>
    `${file} is a module without its start file: a prefix and versions that main.js sets are missing in the paths`,
} as const;
