import { nearest } from '../../util/nearest.js';
import { counted, listOf, show } from '../wording.js';
import { meant, nearDuration, optionMessages } from './options.js';

/** The most names to list. */
const MOST_NAMES = 20;

function shortened(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return names.slice(0, MOST_NAMES).map(show).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** Behind an option of the command line that is unknown. The hyphens are no letters that could be right. */
function meantOption(got: string, known: readonly string[]): string {
  const near = nearest(got.replace(/^-+/, ''), known);
  return near === undefined ? '' : ` (did you mean '--${near}'?)`;
}

/** The messages of the command line program, which no app loads. */
export const cliMessages = {
  noCommand: (known: readonly string[]) => `no command was given, wants one of ${known.join(', ')}`,
  unknownCommand: (got: string, known: readonly string[]) =>
    `the command is ${show(got)}${meant(got, known)}, wants one of ${known.join(', ')}`,
  unknownPart: (got: string, known: readonly string[]) =>
    `got the argument ${show(got)}${meant(got, known)}, wants one of ${known.join(', ')}`,
  unknownOption: (got: string, known: readonly string[]) =>
    `option ${show(got)} is unknown${meantOption(got, known)}, wants only ${known.map((option) => `--${option}`).join(', ')}`,
  unreadableArguments: (reason: string) => reason,
  optionTwice: (option: string) => `option '--${option}' is given twice, wants it once`,
  wrongOption: (option: string, got: unknown, wants: string) =>
    `option '--${option}' is ${show(got)}, wants ${wants}${nearDuration(got, wants)}`,
  unknownValue: (option: string, got: string, known: readonly string[]) =>
    `option '--${option}' is ${show(got)}${meant(got, known)}, wants one of ${known.join(', ')}`,
  limitWants: () => 'a limit such as gcra:60/1s, as no instance with a console publishes it',
  bareAddress: (key: string, wants: string) =>
    `${show(key)} is an address, which limits count by another key; wants ${wants}, or '--force' if code counts by it`,
  missingOption: (option: string, wants: string) => `option '--${option}' is missing, wants ${wants}`,
  optionWithout: (option: string, other: string) => `option '--${option}' is only for ${other}`,
  missingArgument: (wants: string) => `an argument is missing, wants ${wants}`,
  extraArgument: (got: unknown, wants: readonly string[]) =>
    `got the argument ${show(got)}, wants ${wants.length === 0 ? 'options only' : `no more than ${listOf(wants, 'and')}`}`,
  countedByOther: (name: string, algo: string, others: readonly string[]) =>
    `instances count ${show(name)} by ${listOf(others, 'and')}, not by ${algo}, so this would change nothing; wants '--limit' as the app defines it`,
  unusedName: (name: string, prefix: string, known: readonly string[]) =>
    `Redis has no counter of a limit ${show(name)}${meant(name, known)} under the prefix ${show(prefix)}, so this might change nothing; ` +
    `wants ${known.length === 0 ? "the app's 'prefix'" : `one of ${shortened(known)}`}, or '--force' if the name is right: a counter is gone when its units are back`,
  unusedPrefix: (prefix: string) =>
    `no instance uses the prefix ${show(prefix)}, so this would change nothing; wants the app's 'prefix', or '--force' before its first start`,
  unusedAtHome: (name: string) =>
    `the home of regions has no counter of a limit ${show(name)}, which may count in each region; ` +
    "wants the '--redis' of a region beside '--home', or '--force' if the name is right, or '--module'",
  overRegions: (name: string) =>
    `limit ${show(name)} counts over several regions, wants 'scope=world' in '--limit', and '--home'; or '--module'`,
  overRegionsAtHome: (name: string) =>
    `limit ${show(name)} counts over several regions, wants '--home', the Redis that counts for all of them; or '--module'`,
  notOverRegions: (name: string) =>
    `limit ${show(name)} counts in one region, wants '--limit' without 'scope=world', as the app defines it`,
  homeWithoutCounters: (name: string) =>
    `this is the home of regions, while limit ${show(name)} counts in each region; wants the '--redis' of the region, beside '--home'`,
  changesAtHome: () =>
    "this is the Redis of a region, while rates, modes and lists are kept at the home of the regions; wants '--home', or '--module'",
  changesWithoutHome: () => "rates, modes and lists are kept at the home of the regions; wants '--home'",
  changesUnknown: () => 'what was changed is kept at the home of the regions',
  notHome: (got: string, region: string | undefined, prefix: string) =>
    `option '--home' is ${show(got)}, which is not the home of ${region === undefined ? 'regions' : `the region ${show(region)}`} under the prefix ` +
    `${show(prefix)}; wants the app's 'regions.home'`,
  publishedInRegions: (prefix: string) =>
    `this is the home of regions, while instances publish their limits under the prefix ${show(prefix)} in each region; ` +
    "wants the '--redis' of a region, and this one as '--home'",
  consoleWithoutHome: () =>
    "Rates, modes and lists are kept at the home of the regions: '--home' shows and changes them, and looks up limits of scope 'world'.",
  notBesideApp: (name: string) =>
    `limit ${show(name)} counts over several regions, and its units go back or are owed in one of them: wants an instance of the app`,
  notSearched: (reason: string) =>
    `Redis does not let this search for counters (${reason}), so it is unknown whether the name is right; wants '--force', or '--module'`,
  unreadState: (reason: string) => `the state cannot be read, so nothing was changed: ${reason}`,
  unreadAfter: (reason: string) => `it was sent, but the state cannot be read again: ${reason}`,
  countsPerRoute: (name: string) => `the limit ${show(name)} counts each route by itself, wants one that does not`,
  wrongPath: (name: string, got: string) =>
    `the key of ${show(name)} is ${show(got)}, wants those of the limits that it is within before it, separated by '/'`,
  notBlocked: (name: string, key: string, others: readonly string[] = []) =>
    `the key ${show(key)} of ${show(name)} is not blocked, so there is nothing to unblock` +
    (others.length === 0 ? '' : `; blocked keys that contain it: ${shortened(others)}`),
  nothingCounted: (name: string, key: string) =>
    `the key ${show(key)} of ${show(name)} has used nothing and is not blocked, so there is nothing to reset`,
  noOverride: (name: string, key: string | undefined) =>
    `no change of ${show(name)}${key === undefined ? '' : ` for ${show(key)}`} is in force, so there is nothing to clear`,
  notListed: (entry: string, limit: string | undefined) =>
    `${show(entry)} is on no list${limit === undefined ? ' for all limits' : ` of ${show(limit)}`} by a change, so there is nothing to remove`,
  noPublishedLimits: (prefix: string) =>
    `Redis has no limits of an app with the prefix ${show(prefix)}, wants one whose instances had a console in the last week`,
  noPlatform: () => 'no HTTP platform of Nest is installed, wants @nestjs/platform-express or @nestjs/platform-fastify',
  unservable: (reason: string) => `the console cannot be served: ${reason}`,
  notOnRedis: () =>
    "the app has no 'redis', so a change would end with this command; wants an app that counts on Redis",
  wrongPatch: (got: string) => `got ${show(got)}, wants an option and its value, such as rate=50`,
  noArguments: (got: unknown) => `got the argument ${show(got)}, wants options only`,
  unloadable: (file: string, reason: string) =>
    `the module ${show(file)} cannot be loaded, wants a built file such as './dist/app.module.js': ${reason}`,
  noModule: (file: string, className: string | undefined, known: readonly string[]) =>
    `the module ${show(file)} exports no class ${className === undefined ? "'AppModule', nor one alone" : show(className) + meant(className, known)}, wants ` +
    (known.length > 0 ? `one of ${known.join(', ')}` : 'a class of a module'),
  unstartable: (file: string, reason: string) => `the app of ${show(file)} cannot be started: ${reason}`,
  noLimits: () => 'the app has no RateLimitModule, wants one whose limits can be explained',
  noInput: () => "no log is given, wants a file, '-' for the standard input, or '--generate'",
  twoInputs: (got: readonly string[]) => `got the inputs ${listOf(got.map(show), 'and')}, wants one of them`,
  svgIsInput: (path: string) => `option '--svg' is ${show(path)}, which is the log, wants another file`,
  nothingToSimulate: (path: string) =>
    `${show(path)} has no limit that can be simulated, wants one with an 'algo' that is neither off nor 'concurrency'`,
  noPolicy: () => 'no policy file is given, wants at least one .yaml, .yml or .json file',
  noPolicyFile: (path: string) =>
    `${show(path)} is not a policy file, wants a name that ends with .yaml, .yml or .json`,
  unreadableFile: (path: string, reason: string) => `${show(path)} cannot be read: ${reason}`,
  unwritableFile: (path: string, reason: string) => `${show(path)} cannot be written: ${reason}`,
  wrongLimit: (spec: string, wants: string) => `--limit ${show(spec)}: it wants ${wants}`,
  wrongLimitOption: (spec: string, option: string, got: unknown, wants: string) =>
    `--limit ${show(spec)}: option '${option}' is ${show(got)}, wants ${wants}`,
  unknownLimitOption: (spec: string, option: string, known: readonly string[]) =>
    `--limit ${show(spec)}: option ${show(option)} ${optionMessages.unknown(option, known)}`,
  sharesNotSaid: (spec: string) =>
    `--limit ${show(spec)}: option 'share' is not a single value, wants the limit without it: the total is the same, ` +
    'but what each tenant gets is not simulated',
  limitOptionTwice: (spec: string, option: string) =>
    `--limit ${show(spec)}: option '${option}' is given twice, wants it once`,
  notSimulated: (spec: string, algo: string) =>
    `--limit ${show(spec)}: '${algo}' cannot be simulated, since no log shows when its units are released; wants another algorithm`,
  notCalled: (spec: string, algo: string) =>
    `--limit ${show(spec)}: '${algo}' cannot be decided by one line, since each call needs a number of its own; wants another algorithm`,
  worldNotCalled: (spec: string) =>
    `--limit ${show(spec)}: option 'scope' is 'world', wants a limit that counts in one region: units of others come from their home`,
  sameLimitTwice: (name: string) =>
    `option '--limit' has the name ${show(name)} twice, wants a name for each: algo:rate/interval@name`,
  unknownFormat: (line: string, formats: readonly string[]) =>
    `the format of the log is not known by its first lines (the first is ${show(line)}), wants '--format' with one of ${formats.join(', ')}`,
  unknownField: (option: string, field: string, known: readonly string[]) =>
    `option '--${option}' names the field ${show(field)}${meant(field, known)}, which the format does not have, wants one of ` +
    known.join(', '),
  noField: (option: string, looked: readonly string[], found: readonly string[]) =>
    `option '--${option}' is missing, and the first lines have none of ${looked.join(', ')}; wants a field: they have ` +
    (found.length > 0 ? found.map(show).join(', ') : 'none'),
  keyOfGenerated: (key: string) =>
    `the key of a limit is ${show(key)}, but generated requests have only 'ip' and 'global'`,
  tooManyGenerated: (spec: string, duration: string, most: number) =>
    `options '--generate' and '--for' are ${spec} and ${show(duration)}, wants at most ${most} requests`,
  nothingGenerated: () => 'no request was generated: the rate is too low for the time',
  allFiltered: (lines: number) => `'--path' and '--status' leave none of ${counted(lines, 'request')}`,
  emptyLog: () => 'the log is empty',
  nothingRead: (first: { line: number; reason: string; text: string } | undefined) =>
    'no line of the log could be read' +
    (first === undefined ? '' : `: line ${first.line} ${first.reason}: ${show(first.text)}`),
} as const;
