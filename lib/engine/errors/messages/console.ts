import { show } from '../wording.js';
import { nearDuration } from './options.js';

/** The messages of the console. */
export const consoleMessages = {
  noModule: (location: string) =>
    `${location}: the app has no RateLimitModule, wants RateLimitModule.forRoot() or forRootAsync() imported beside it`,
  hidesResponse: () =>
    "the responses of this HTTP adapter neither are Node's nor hold one as 'raw', and the console writes files and live data there",
  secondConsole: (location: string) =>
    `${location}: the console is imported more than once in this app, wants one console for the whole app`,
  reservedName: (location: string, name: string) =>
    `${location}: the app has a limit of the name '${name}', wants another name, since the console's own routes are limited by it`,
  misplaced: (location: string, option: string) =>
    `${location}: option '${option}' came from the factory, wants it beside useFactory, since Nest reads it before`,
  unguarded: (path: string) =>
    `the console at '${path}' has guards: 'none', so everybody who reaches this app sees its limits and who uses them`,
  noFields: (got: unknown) =>
    `the body is ${show(got)}, wants a JSON object; the app's body parser has to read application/json`,
  unknownField: (known: readonly string[]) => `is unknown, wants only ${known.join(', ')}`,
  missingField: (wants: string) => `is missing, wants ${wants}`,
  wrongField: (got: unknown, wants: string) => `is ${show(got)}, wants ${wants}${nearDuration(got, wants)}`,
  readOnly: () => "this console is read-only: it has no option 'write'",
  needsRole: (role: string, option: string) =>
    `this needs the role '${role}', which only the guards of the option '${option}' give` +
    (role === 'change' ? ': it changes what holds for all, or without an end' : ''),
  crossOrigin: () => 'the request comes from a page of another origin',
  noHeader: (header: string) => `the header ${header} is missing, which the console's own page sends`,
  notJson: (got: unknown) => `the content type is ${show(got)}, wants application/json`,
  tooMany: (seconds: number) => `too many requests of the console from this address, wants a pause of ${seconds} s`,
  tooManyViewers: (most: number) => `${most} viewers look at this instance already, wants one of them to leave`,
  wrongActor: (got: unknown) =>
    `the option 'actor' gave ${show(got)}, wants a string that is not empty, so nothing was changed`,
  notLogged: (reason: string) => `the change is done, but could not be written to the log: ${reason}`,
  noFile: () => 'the console has no such page or file',
  nothingToClear: () => 'there was no override of this key, so nothing was changed',
  unknownLimit: () => 'names no limit of this app',
  unknownId: () => 'stands for no key that this limit counted lately, wants the identity itself',
  countsPerRoute: () => 'counts each route separately, so its keys are not known here',
  notOfLimit: (wants: string) => `is none that this limit counts by, wants ${wants}`,
  countedByNone: (wants: readonly string[]) => `is counted by no limit, wants ${wants.join(', or ')}`,
  wantsPath: (levels: readonly { readonly name: string }[]) =>
    `is not a key of this limit, wants the keys of ${levels.map(({ name }) => `'${name}'`).join(', ')} with slashes between them: ` +
    levels.map(() => '…').join('/'),
  unchangeableLimit: () =>
    "cannot be changed while the app runs, wants a limit of 'define' or 'forFeature', or one of the module's with a 'name'",
  oneOfIdentityAndIp: () => "is missing, wants either 'identity' or 'ip'",
  networkAsIdentity: () => "is a network, wants it as 'ip'; no limit counts by it",
  noCandidate: () => 'has no candidate, wants a limit with one',
  otherAlgorithm: (got: string, algo: string) =>
    `has a candidate of '${got}', wants one of '${algo}': another algorithm needs a new configuration`,
  /** A message about the key of a limit by a header, for those who call no functions. */
  ofHeaders: (message: string) =>
    message.replaceAll(
      /headerIdentity\('([^']+)', value\): 'header:[^']+' and the hash of the value/g,
      (_, header: string) => `'header:${header.toLowerCase()}:' and the value, which is hashed here`,
    ),
  changedMeanwhile: () =>
    'somebody has changed something since this was shown, so nothing was done: look again at what it undoes',
  unknownChange: (version: number) => `the change ${version} is no longer in the history`,
  changedLater: (version: number) =>
    `change ${version} has changed the same since, so nothing was done: undo that one first, or roll back`,
  unreachable: (reason: string) => `Redis does not answer, so only this instance is shown: ${reason}`,
  unread: (reason: string) =>
    `Redis does not answer, so this is what the instance that answers you knew last: ${reason}`,
  unreadTenants: (reason: string) => `tenants could not be read: ${reason}`,
  unobservable: (reason: string) => `Redis does not answer, so nothing is known of the app: ${reason}`,
  unreported: (reason: string) => `an alert could not be reported, and is tried again while it lasts: ${reason}`,
  unstored: (reason: string) => `this instance cannot store what it counts, so the others do not show it: ${reason}`,
} as const;
